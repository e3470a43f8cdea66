// Verification that reads IN and OUT at the same time, sample beside sample.
#pragma once

#include <optional>
#include <string>

#include "anonymize/hidden_values.h"
#include "anonymize/originals.h"
#include "anonymize/verify.h"
#include "anonymize/verify_chains.h"
#include "anonymize/verify_samples.h"
#include "perfdata/reader.h"
#include "perfdata/sample.h"
#include "perfdata/sorter.h"

namespace stackreel::anonymize {

class SideBySide : public perfdata::TimedSink {
 public:
  // Whether all that the frames of IN's samples come from is their chains, or the chains that
  // `unwound` has of their stacks. It is not where branches are calls and where an address is
  // signed: then an analysis of each is to be compared.
  static bool Fits(const perfdata::Reader& in, const SeenMappings& mappings, bool unwound);

  // All must outlive it. `samples` and `hidden` get IN's samples; `unwound` may be null.
  SideBySide(perfdata::Reader& in, perfdata::Reader& out, Level level, SampleDigests& samples,
             HiddenValues& hidden, UnwoundChains* unwound)
      : in_(in),
        out_(out),
        samples_(samples),
        hidden_(hidden),
        unwound_(unwound),
        chains_(in, out, level) {}

  // Reads both to their ends; all records of OUT go to `out_pass`.
  Status Read(perfdata::RecordSink& out_pass);
  // For `out_pass`, while it has a sample: what is not the same in its frames.
  std::optional<std::string> Difference(const perfdata::RawRecord& raw,
                                        const perfdata::Sample& sample);

  Status OnTimedRecord(const perfdata::TimedRecord& timed) override;

 private:
  Status ReadOutToItsNextSample();
  Result<bool> TakeUnwound(const perfdata::TimedRecord& timed, const perfdata::Attr& attr);

  perfdata::Reader& in_;
  perfdata::Reader& out_;
  SampleDigests& samples_;
  HiddenValues& hidden_;
  UnwoundChains* unwound_;
  ChainCheck chains_;
  perfdata::RecordSink* out_pass_ = nullptr;
  perfdata::RawRecord out_raw_;
  perfdata::Sample sample_;                // of IN
  std::optional<ChainedSample> expected_;  // of it, until OUT's has been looked at
  std::optional<std::string> no_chain_;    // why there is none to be compared with
};

}  // namespace stackreel::anonymize
