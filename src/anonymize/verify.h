// Whether an anonymised recording holds anything that it should not, or lacks anything that it
// should have. Independent of the transform: it shares the reader (perfdata, session), the levels,
// the facts below, and what stacks were unwound to (UnwoundChains), which is found before both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "anonymize/collect.h"
#include "anonymize/level.h"
#include "anonymize/public_names.h"
#include "base/error.h"
#include "perfdata/sample.h"

namespace stackreel::anonymize {

// What anonymised recordings promise to who checks them, and the transform keeps to:
//
// * An address is 0 (none), a context marker of a chain, the cookie behind the deferred marker, in
//   a mapping of OUT (or one byte behind it: a return address), or in the pseudonym range of its
//   half (PseudonymsOf in build.h, the same in all recordings of one width, which is IN's). A
//   mapping of the kernel of which IN knew neither start nor symbol stays [0, -page).
// * Records go out in order of time, equal times in IN's order; those without a time as they come.
//   Samples correspond one to one, in that order. Other records may be missing (payload, unknown,
//   damaged: the report counts them), none is added but those a perfdata::Writer makes of its own.
// * From kIdentity on all times but 0 and -1 are IN's and one amount more; those of the wall clock
//   and another amount. Process numbers are others, one for one, but 0 and -1; files, devices and
//   cgroups have other numbers, but 0. Of the machine no number is told.
// * From kIdentity on texts keep the parts that are public (public_names.h): PrivateParts says
//   which are not. At kSymbols functions of modules that are not public are "f_" and ten letters.
// * Endianness is IN's. IN may be a pipe's content and OUT a file, or the other way.
// * New places of mappings and pseudonyms avoid all pages that were mapped in IN: no address of OUT
//   is one of IN's by chance (but in 32-bit address spaces, where there may be no room).
// * Fixed addresses below 4 GB (non-PIE programs) are moved like others; a value that is small may
//   still stand in OUT as something else: a length, a count, an offset in a file.

enum class FindingKind : char {
  kAddressOutside = 'a',  // an address that is none of the above
  kOriginalValue = 'b',   // bytes or hex digits that are an address, page number or move of IN
  kPayload = 'c',         // bytes of stacks, registers, raw data, code or AUX; a kernel's symbols
  kEventConfig = 'd',     // an attr, in any of its places, with what may be an address
  kText = 'e',            // a text that the level hides
  kDifference = 'f',      // frames, count, period, time or order of the samples
  kKey = 'g',             // the key does not determine the output, or not it alone
  kPerf = 'h',            // perf reports other symbols
};

// One thing that is wrong.
struct Finding {
  FindingKind kind = FindingKind::kAddressOutside;
  std::string record;        // "SAMPLE", "feature CMDLINE", "attr", "" for bytes between
  std::string field;         // of the schema; "" if it is not in one
  uint64_t file_offset = 0;  // in OUT: of the record, or of the compressed record it came out of
  uint64_t offset = 0;       // of the value, from the record's start
  std::string value;  // what was found, and of what in IN: "0x7f1b22ae9040, in the libc of 12"
};

// A frame as far as both recordings must agree on it.
struct ComparedFrame {
  std::string_view module;  // of who gives it, who keeps it
  uint64_t offset = 0;  // in the module; in memory without a file, and of pseudonyms, in its page
  std::string_view symbol;  // "" if there is none
};
struct ComparedSample {
  uint32_t event = 0;
  uint64_t time = 0, period = 0;
  std::vector<ComparedFrame> frames;  // innermost first; IN's unwound
};
// Gives the samples of a recording with their frames in order of time. Handed in for kind (f) by
// who can unwind and symbolize.
class ComparedSamples {
 public:
  virtual ~ComparedSamples() = default;
  // False at the end.
  virtual Result<bool> Next(ComparedSample& sample) = 0;
};

// The call chain that the stack of a sample of IN was unwound to.
struct UnwoundChain {
  uint32_t event = 0;
  uint64_t time = 0;
  perfdata::U64Array chain;  // as in a sample, with markers; of the last one given
};
// Gives those of all samples of IN that have dumped stacks, in order of time. Handed in by who has
// unwound them already: unwinding them once more would tell the same.
class UnwoundChains {
 public:
  virtual ~UnwoundChains() = default;
  // Nothing at the end.
  virtual Result<std::optional<UnwoundChain>> Next() = 0;
};

struct VerifyOptions {
  // What OUT is to hide; more, if its mark (AnonymizedMark) says so. Nothing: what its mark says.
  std::optional<Level> level;
  // OUT was made at `level`, and without a mark that says so something is wrong.
  bool must_be_marked = false;
  // What keeps its name at the higher levels, besides what is everybody's.
  PublicNames publics;
  // Raw data of tracepoints may stay, as the transform was asked to keep what is safe of it. Its
  // bytes are searched at every offset, as all are.
  bool keeps_raw = false;
  // IN may be damaged: what can be read of it counts.
  bool salvaged = false;
  // Texts that must not stand in OUT anywhere, besides those that the level hides in IN: planted
  // secrets.
  std::vector<std::string> denied;
  // Where stacks were unwound; null: nobody has.
  UnwoundChains* unwound = nullptr;
  // Both or neither. Asked where frames do not follow from chains alone, as they do of most
  // recordings; there, without them, (f) compares counts, times, periods and order only.
  ComparedSamples* in_samples = nullptr;
  ComparedSamples* out_samples = nullptr;
  size_t findings_kept = 100;
};

// All that is wrong with one field of one kind of record, in one way.
struct FindingGroup {
  Finding first;
  uint64_t count = 0;
};

struct Verdict {
  // By kind, record and field; what leaks before what differs, and what is found often first.
  std::vector<FindingGroup> groups;
  std::vector<Finding> findings;    // the first of all, `findings_kept`
  uint64_t found = 0;               // in all
  Level level = Level::kAddresses;  // at which it was checked
  std::optional<Level> mark;        // that OUT says it was made at
  uint64_t samples = 0;             // of OUT
  uint64_t mappings = 0;            // records of OUT
  uint64_t bytes = 0;               // looked at, decompressed
  [[nodiscard]] bool clean() const { return found == 0; }
};

// Checks (a) to (f). An Error means that it could not be checked: IN or OUT cannot be read whole,
// or OUT's mark tells of a level that we do not know.
Result<Verdict> Verify(const RereadableRecording& in, const RereadableRecording& out,
                       const VerifyOptions& options);

}  // namespace stackreel::anonymize
