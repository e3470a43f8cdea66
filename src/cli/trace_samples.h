// `trace --with-samples`: a recording of the process whose calls are traced, beside the trace.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "os/file.h"
#include "record/look_request.h"
#include "record/recorder.h"
#include "tracer/trace_session.h"

namespace stackreel::cli {

// The recorder of `record`, on a thread of its own. Its times are of CLOCK_MONOTONIC, as those of
// the trace are.
class TraceSamples : public tracer::TraceCompanion {
 public:
  // `cmdline`: of this program, for the recording to tell.
  TraceSamples(uint64_t frequency, std::vector<std::string> cmdline,
               std::function<void(const std::string&)> notice);
  TraceSamples(const TraceSamples&) = delete;
  TraceSamples& operator=(const TraceSamples&) = delete;
  ~TraceSamples() override;

  Status Begin(uint32_t pid, const std::string& directory) override;
  void LookNow() override;
  void End(bool discard) override;

  // Once it has ended. Nothing: it has not begun.
  [[nodiscard]] const std::optional<Result<record::RecordSummary>>& summary() const {
    return summary_;
  }

 private:
  record::RecordOptions options_;
  std::function<void(const std::string&)> notice_;
  os::Fd end_;
  record::LookRequest look_;
  std::thread thread_;
  std::promise<bool> begun_;  // or ended at once
  std::optional<Result<record::RecordSummary>> summary_;
};

}  // namespace stackreel::cli
