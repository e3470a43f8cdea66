#include "cli/compared_samples.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "analyze/analysis.h"
#include "os/thread_pool.h"

namespace stackreel::cli {
namespace {

using anonymize::ComparedFrame;
using anonymize::ComparedSample;

class NoModuleFiles : public symbolize::ModuleFileProvider {
 public:
  symbolize::ModuleFiles FilesOf(const session::Module& /*module*/) override { return {}; }
};

uint64_t OffsetOf(const analyze::AnalyzedFrame& frame, const session::Module* module) {
  constexpr uint64_t kInPage = 4095;
  const uint64_t address = frame.address.avma.value;
  if (module == nullptr) return address & kInPage;
  if (module->is_kernel()) {
    const uint64_t reference = module->reference_address;
    const uint64_t start = reference != 0 ? reference : module->kernel_start.value;
    return start != 0 ? address - start : address & kInPage;
  }
  const bool has_file = module->key.kind == session::ModuleKind::kFile ||
                        module->key.kind == session::ModuleKind::kVdso;
  return has_file ? frame.offset.value : address & kInPage;
}

class AnalysedSamples : public anonymize::ComparedSamples, public analyze::AnalysisSink {
 public:
  AnalysedSamples(anonymize::RereadableRecording::Opened opened, const ModuleFilesFactory& files,
                  size_t threads)
      : opened_(std::move(opened)),
        files_(files(opened_.reader->features())),
        executor_(os::MakeThreadPool(threads)),
        analysis_(*opened_.reader, *files_, *executor_, OptionsOf()) {}
  ~AnalysedSamples() override {
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Status Start() {
    TRY_ASSIGN(thread_, os::StartThread([this] { Run(); }));
    return {};
  }

  Result<bool> Next(ComparedSample& sample) override;
  Status OnSample(const analyze::AnalyzedSample& analyzed) override;

 private:
  using Batch = std::vector<ComparedSample>;
  static constexpr size_t kBatch = 1024, kBatches = 4;

  static analyze::AnalysisOptions OptionsOf() {
    analyze::AnalysisOptions options;
    options.symbolize = false;
    return options;
  }
  void Run();
  Status Give();
  // Stays where it is.
  std::string_view NameOf(session::ModuleId id, const session::Module* module) {
    if (module == nullptr) return "";
    while (names_.size() <= id) names_.emplace_back();
    std::optional<std::string>& name = names_[id];
    if (!name) name = module->name();
    return *name;
  }

  anonymize::RereadableRecording::Opened opened_;
  std::unique_ptr<symbolize::ModuleFileProvider> files_;
  std::unique_ptr<BackgroundExecutor> executor_;
  analyze::Analysis analysis_;
  std::deque<std::optional<std::string>> names_;  // of modules
  Batch filling_, taking_;
  size_t taken_ = 0;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  bool closed_ = false;          // nobody asks any more
  std::optional<Status> ended_;  // all was given, or why not
};

void AnalysedSamples::Run() {
  Status status;
  const Result<analyze::AnalysisResult> result = analysis_.Run(*this);
  if (!result) {
    status = std::unexpected(result.error());
  } else {
    status = Give();
  }
  const std::scoped_lock lock(mutex_);
  ended_ = std::move(status);
  changed_.notify_all();
}

Status AnalysedSamples::Give() {
  if (filling_.empty()) return {};
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || ready_.size() < kBatches; });
  if (closed_) return Fail(ErrorKind::kInterrupted, "nobody compares any more");
  ready_.push_back(std::move(filling_));
  filling_.clear();
  changed_.notify_all();
  return {};
}

Status AnalysedSamples::OnSample(const analyze::AnalyzedSample& analyzed) {
  ComparedSample& sample = filling_.emplace_back();
  sample.event = analyzed.event;
  sample.time = analyzed.sample->time;
  sample.period = analyzed.period;
  const std::vector<session::Module>& modules = analysis_.session().modules();
  for (const analyze::AnalyzedFrame& frame : analyzed.frames) {
    const session::Module* module =
        frame.module < modules.size() ? &modules[frame.module] : nullptr;
    sample.frames.push_back({NameOf(frame.module, module), OffsetOf(frame, module), ""});
  }
  return filling_.size() < kBatch ? Status() : Give();
}

Result<bool> AnalysedSamples::Next(ComparedSample& sample) {
  if (taken_ == taking_.size()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
    if (ready_.empty()) {
      if (!*ended_) return std::unexpected(ended_->error());
      return false;
    }
    taking_ = std::move(ready_.front());
    ready_.pop_front();
    taken_ = 0;
    changed_.notify_all();
  }
  std::swap(sample, taking_[taken_++]);
  return true;
}

}  // namespace

Result<std::unique_ptr<anonymize::ComparedSamples>> CompareSamplesOf(
    const anonymize::RereadableRecording& recording, const ModuleFilesFactory& files,
    size_t threads) {
  TRY_ASSIGN(anonymize::RereadableRecording::Opened opened, recording.Open());
  auto samples = std::make_unique<AnalysedSamples>(std::move(opened), files, threads);
  TRY(samples->Start());
  return samples;
}

Result<anonymize::Verdict> VerifyRecordings(const anonymize::RereadableRecording& in,
                                            const anonymize::RereadableRecording& out,
                                            anonymize::VerifyOptions options,
                                            const ModuleFilesFactory& files, size_t threads) {
  const auto none = [](const perfdata::Features&) { return std::make_unique<NoModuleFiles>(); };
  TRY_ASSIGN(const auto in_samples, CompareSamplesOf(in, files, threads));
  TRY_ASSIGN(const auto out_samples, CompareSamplesOf(out, none, threads));
  options.in_samples = in_samples.get();
  options.out_samples = out_samples.get();
  return anonymize::Verify(in, out, options);
}

}  // namespace stackreel::cli
