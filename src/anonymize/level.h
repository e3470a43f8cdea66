// How much is hidden, and what that means for each class of field: the one table that decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfdata/schema.h"

namespace stackreel::anonymize {

// Each hides what the one before it hides, and more.
enum class Level : uint8_t {
  kAddresses,  // where the kernel and processes lie in memory, and what was in it
  kIdentity,   // machine, users, command lines, times, process numbers
  kSymbols,    // modules that are not public, and their functions
};
// "addresses", "identity", "symbols".
std::string_view LevelName(Level level);

// What becomes of a field.
enum class Treatment : uint8_t {
  kKeep,
  kMove,       // an address: to where its mapping is now
  kEvent,      // of an attr: what may be an address is replaced, see attr_scrub.h
  kDrop,       // the field goes; where a record has nothing else, the record
  kText,       // kept, but addresses written in it are replaced
  kPseudonym,  // a keyed name or number stands for what is not public in it, see pseudonyms.h
  kShift,      // a time: by one amount for all of its clock
  kRenumber,   // a process number: another one, equal for equal numbers
};
Treatment TreatmentOf(Level level, perfdata::Sensitivity sensitivity);

// What becomes of raw data (PERF_SAMPLE_RAW).
enum class KeepRaw : uint8_t {
  kNothing,
  kSafe,  // of tracepoints, the fields that RawFields calls safe
};

}  // namespace stackreel::anonymize
