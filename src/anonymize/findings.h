// What verification has found, counted by what and where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "anonymize/verify.h"

namespace stackreel::anonymize {

// Counts all, keeps the first ones. Fields of records are few, so that memory is bounded.
class Findings {
 public:
  Findings(Verdict& verdict, size_t kept) : verdict_(verdict), kept_(kept) {}
  // `count` of them, of which this is the first.
  void Add(const Finding& finding, uint64_t count = 1);
  // Puts the groups in order: call it when all are found.
  void Finish();

 private:
  Verdict& verdict_;
  size_t kept_;
  std::map<std::tuple<FindingKind, std::string, std::string>, size_t> groups_;  // in verdict_
};

}  // namespace stackreel::anonymize
