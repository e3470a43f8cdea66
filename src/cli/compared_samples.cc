#include "cli/compared_samples.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "analyze/analysis.h"
#include "anonymize/verify_chains.h"
#include "os/thread_pool.h"

namespace stackreel::cli {
namespace {

using anonymize::ComparedSample;

class NoModuleFiles : public symbolize::ModuleFileProvider {
 public:
  symbolize::ModuleFiles FilesOf(const session::Module& /*module*/) override { return {}; }
};

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
    // In OUT nothing lies where the dump has it.
    options.jit_code = false;
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
    sample.frames.push_back(anonymize::FrameAt(module, NameOf(frame.module, module),
                                               frame.address.avma.value, frame.offset.value));
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

// Opens the recording when it is asked first: most are compared without.
class SamplesOnDemand : public anonymize::ComparedSamples {
 public:
  SamplesOnDemand(const anonymize::RereadableRecording& recording, const ModuleFilesFactory& files,
                  size_t threads)
      : recording_(recording), files_(files), threads_(threads) {}
  Result<bool> Next(ComparedSample& sample) override {
    if (samples_ == nullptr) {
      TRY_ASSIGN(samples_, CompareSamplesOf(recording_, files_, threads_));
    }
    return samples_->Next(sample);
  }

 private:
  const anonymize::RereadableRecording& recording_;
  const ModuleFilesFactory& files_;
  size_t threads_;
  std::unique_ptr<anonymize::ComparedSamples> samples_;
};

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
  const ModuleFilesFactory none = [](const perfdata::Features&) {
    return std::make_unique<NoModuleFiles>();
  };
  SamplesOnDemand in_samples(in, files, threads), out_samples(out, none, threads);
  options.in_samples = &in_samples;
  options.out_samples = &out_samples;
  return anonymize::Verify(in, out, options);
}

}  // namespace stackreel::cli
