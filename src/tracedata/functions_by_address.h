// Which function a pointer among the values of a call leads to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/address.h"
#include "tracedata/trace_source.h"

namespace stackreel::tracedata {

class FunctionsByAddress {
 public:
  // The tables must outlive it, and may grow meanwhile.
  explicit FunctionsByAddress(const TraceTables& tables) : tables_(tables) {}

  // The row of the function that begins there, in whatever process loaded its module; nothing if
  // the trace knows none.
  std::optional<uint32_t> RowAt(Avma avma);

 private:
  const TraceTables& tables_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> rows_;  // by module and svma
  uint32_t known_ = 0;                                      // rows that are in it
};

}  // namespace stackreel::tracedata
