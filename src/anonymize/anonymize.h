// A recording → the same without what its level hides.
//
//   IN ─► Collect ─► Remap::Build ─┐
//   IN ─► RoundSorter ─► [unwind] ─► Transform ─► perfdata::Writer ─► OUT
//
// The step in brackets is handed in: who can unwind (analyze, and above) makes call chains of
// dumped stacks before they are dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "anonymize/collect.h"
#include "anonymize/key.h"
#include "anonymize/level.h"
#include "anonymize/public_names.h"
#include "anonymize/report.h"
#include "base/error.h"
#include "base/io.h"
#include "perfdata/sorter.h"

namespace stackreel::anonymize {

// Takes sorted records and passes them on, in the same order, some of them changed.
class RecordStep : public perfdata::TimedSink {
 public:
  // The events as the records that it passes on have them: as many, with the same ids.
  [[nodiscard]] virtual std::vector<perfdata::Event> Events() const = 0;
  // No record is to come: passes on what is held.
  virtual Status Finish() = 0;
  // What it has to tell at the end: counters, and features to be written besides the recording's.
  virtual void CollectCounters(Counters& counters) const = 0;
  [[nodiscard]] virtual std::map<uint32_t, std::vector<uint8_t>> Features() const = 0;
};
// What a recording says of all its records, wherever in it that stands.
struct RecordingHead {
  Endian endian = Endian::kLittle;
  const std::vector<perfdata::Event>& events;
  const perfdata::Features& features;
};
// What `head` refers to, `next` and what the factory holds outlive the step. Null: nothing is to be
// done.
using RecordStepFactory = std::function<std::unique_ptr<RecordStep>(const RecordingHead& head,
                                                                    perfdata::TimedSink& next)>;

struct Options {
  Level level = Level::kAddresses;
  // Besides those that everybody's machine has, see public_names.h.
  PublicNames publics;
  // Of the output: a file can be sought in, a pipe cannot.
  perfdata::Container container = perfdata::Container::kFile;
  // May be null: then samples lose their stacks without a call chain made of them.
  RecordStepFactory unwind;
  // May be null: then nobody without the modules' files can name functions in the output. Gets the
  // records as they come from `unwind`; of use where modules lose their names.
  RecordStepFactory name_functions;
  KeepRaw keep_raw = KeepRaw::kNothing;
  // Goes on where `in` is damaged: what can be read is anonymised, the Outcome tells the loss.
  bool salvage = false;
};

struct Outcome {
  perfdata::ReadEnd read;
  uint64_t samples = 0;
  uint64_t bad_records = 0;  // not as their type says, and left out
  Report report;
};

// Writes all of `in`, anonymised, to `out`, in the byte order of `in`, compressed if `in` is; the
// same `in`, `key` and options give the same bytes. Where `in` is damaged, and damage is not to be
// salvaged, or an event has an id that no kernel gives, kDamaged (with the offset, if it has one),
// and what was written is not to be used. kUsage if raw data is to be kept by a level that hides
// who is who.
Result<Outcome> Anonymize(const RereadableRecording& in, ByteSink& out, const Key& key,
                          const Options& options);

}  // namespace stackreel::anonymize
