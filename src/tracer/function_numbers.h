// What modules and functions are called by in a trace: numbers, the same for the same file wherever
// and how often it is loaded, in whichever process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/address.h"
#include "base/build_id.h"

namespace stackreel::tracer {

struct Numbered {
  uint32_t number = 0;
  bool is_new = false;  // the trace is to be told what it is
};

class FunctionNumbers {
 public:
  // `version` tells apart what had the same path at different times.
  Numbered OfModule(const std::string& path, uint64_t version, const BuildId& build_id) {
    const auto next = static_cast<uint32_t>(modules_.size());
    const auto [at, is_new] = modules_.emplace(std::tuple(path, version, build_id), next);
    return {at->second, is_new};
  }
  // From 1 on. `module` is a module's number.
  Numbered OfFunction(uint32_t module, Svma start) {
    const auto next = static_cast<uint32_t>(functions_.size()) + 1;
    const auto [at, is_new] = functions_.emplace(std::pair(module, start), next);
    return {at->second, is_new};
  }

 private:
  std::map<std::tuple<std::string, uint64_t, BuildId>, uint32_t> modules_;
  std::map<std::pair<uint32_t, Svma>, uint32_t> functions_;
};

}  // namespace stackreel::tracer
