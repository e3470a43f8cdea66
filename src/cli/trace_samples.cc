#include "cli/trace_samples.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "os/thread_pool.h"
#include "tracedata/trace_writer.h"

namespace stackreel::cli {

TraceSamples::TraceSamples(uint64_t frequency, std::vector<std::string> cmdline,
                           std::function<void(const std::string&)> notice)
    : notice_(std::move(notice)) {
  options_.frequency = frequency;
  options_.cmdline = std::move(cmdline);
  options_.clockid = CLOCK_MONOTONIC;
}

TraceSamples::~TraceSamples() { End(/*discard=*/false); }

Status TraceSamples::Begin(uint32_t pid, const std::string& directory) {
  if (thread_.joinable()) return {};  // another program of the same process
  end_ = os::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!end_.valid()) return Fail(os::ErrnoError(errno, "cannot make an event descriptor"));
  begun_ = {};
  summary_.reset();
  options_.pids = {pid};
  options_.output = directory + "/" + tracedata::kSamplesFile;
  options_.end_fd = end_.get();
  options_.look = &look_;
  std::future<bool> begun = begun_.get_future();
  const auto run = [this] {
    bool has_begun = false;
    options_.begun = [this, &has_begun] {
      has_begun = true;
      begun_.set_value(true);
    };
    summary_.emplace(record::Record(options_, notice_));
    if (!has_begun) begun_.set_value(false);
  };
  TRY_ASSIGN(thread_, os::StartThread(run));
  if (begun.get()) return {};
  thread_.join();
  if (!*summary_) return Fail(summary_->error());
  return Fail(ErrorKind::kIo, "the samples could not be recorded: " + (*summary_)->ended_by);
}

void TraceSamples::LookNow() {
  constexpr std::chrono::milliseconds kPatience{300};
  if (thread_.joinable()) look_.Ask(kPatience);
}

void TraceSamples::End(bool discard) {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!write(end_.get(), &one, sizeof(one));
    thread_.join();
  }
  if (!discard || options_.output.empty()) return;
  std::error_code error;
  std::filesystem::remove(options_.output, error);
}

}  // namespace stackreel::cli
