// What tests of Analysis share: recordings of one program go through it, lines come out.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/fake_recording.h"

namespace stackreel::analyze {

inline constexpr uint64_t kKernelText = 0xffffffff81000000;

// Has all that is started done as late as may be: whoever looks at what is not ready gets nothing.
class LateExecutor : public BackgroundExecutor {
 public:
  [[nodiscard]] size_t concurrency() const override { return 3; }
  void ParallelFor(size_t count, const std::function<void(size_t, size_t)>& work) override {
    CHECK(work_ == nullptr);
    BackwardExecutor().ParallelFor(count, work);
  }
  void Start(size_t count, std::function<void(size_t, size_t)> work) override {
    CHECK(work_ == nullptr);
    count_ = count;
    work_ = std::move(work);
    ++started;
  }
  void Finish() override {
    CHECK(work_ != nullptr);
    BackwardExecutor().ParallelFor(count_, std::exchange(work_, nullptr));
  }
  [[nodiscard]] bool is_running() const { return work_ != nullptr; }
  size_t started = 0;

 private:
  size_t count_ = 0;
  std::function<void(size_t, size_t)> work_;
};

class AnalysisTest : public testing::Test {
 protected:
  AnalysisTest() { files_.elf["/bin/prog"] = MakeFile(); }

  // Maps MakeFile's text for process 1.
  void MapProgram(FakeRecording& recording, uint32_t pid = 1) {
    recording.Mmap(pid, kBias + 0x1000, 0x4000, TextOffset(files_.elf["/bin/prog"]), "/bin/prog");
  }
  std::vector<std::string> Run(FakeRecording& recording, const AnalysisOptions& options = {}) {
    bytes_ = recording.Take();
    return RunBytes(options);
  }
  std::vector<std::string> RunBytes(const AnalysisOptions& options = {}) {
    MemorySource source(bytes_);
    auto reader = perfdata::Reader::Open(source);
    CHECK(reader.has_value());
    auto analysis = late_ ? std::make_unique<Analysis>(**reader, files_, *late_, options)
                          : std::make_unique<Analysis>(**reader, files_, *executor_, options);
    sink_ = TextSink();
    sink_.analysis = analysis.get();
    sink_.by_portions = by_portions_;
    auto result = analysis->Run(sink_);
    CHECK(result.has_value());
    result_ = *result;
    counters_ = analysis->counters();
    return sink_.lines;
  }

  FakeFiles files_;
  BackwardExecutor backward_;
  InlineExecutor inline_;
  Executor* executor_ = &backward_;
  LateExecutor* late_ = nullptr;  // takes precedence
  bool by_portions_ = false;
  std::vector<uint8_t> bytes_;
  TextSink sink_;
  AnalysisResult result_;
  Counters counters_;
};

}  // namespace stackreel::analyze
