// Options of commands that filter what is recorded: -F, -N, -C, -D, -t, -T and --tracing.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "tracedata/filter_option.h"

namespace stackreel::cli {

class FilterOptions {
 public:
  void Add(CLI::App& app);
  // Those of each option in the order of the command line.
  [[nodiscard]] const std::vector<tracedata::FilterOption>& given() const { return given_; }

 private:
  void AddOne(CLI::App& app, const std::string& names, tracedata::FilterOption::Kind kind,
              const std::string& type, const std::string& help);
  std::vector<tracedata::FilterOption> given_;
};

}  // namespace stackreel::cli
