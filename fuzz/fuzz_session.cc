// Any bytes as a recording, all the way: reader → sorter → session → frames → profile → report,
// script and dump. The modules that it maps are one made-up binary with symbols and CFI, a kernel,
// a perf map and a jitdump, so that addresses are unwound and named.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/fake_recording.h"
#include "base/check.h"
#include "base/memory_io.h"
#include "perfdata/dump.h"
#include "perfdata/reader.h"
#include "session/fake_jit_dump.h"
#include "session/session.h"
#include "views/script_text.h"
#include "views/text_report.h"

namespace stackreel {
namespace {

// A file for every path; text for kernels and JIT code.
class AnyFiles : public symbolize::ModuleFileProvider {
 public:
  symbolize::ModuleFiles FilesOf(const session::Module& module) override {
    symbolize::ModuleFiles files;
    switch (module.key.kind) {
      case session::ModuleKind::kFile:
      case session::ModuleKind::kVdso:
        files.main = binary_;
        break;
      case session::ModuleKind::kJitDump:
        files.main = jit_dump_;
        break;
      case session::ModuleKind::kJit:
        files.perf_map = perf_map_;
        break;
      default:
        files.kallsyms = kallsyms_;
    }
    return files;
  }

 private:
  static std::vector<uint8_t> MakeJitDump() {
    session::FakeJitDump dump;
    dump.Lines(1, 0x1000, {{0x1000, 1, "a.js"}, {0x1010, 2, "a.js"}});
    dump.Load(1, 0x1000, 0x100, "one", 0);
    dump.Load(1'000'000, 0x1080, 0x100, "two", 1);
    dump.Load(2, 0x7f0000000000, 0x100000, "three", 2);
    return dump.Take();
  }

  static FileImagePtr Text(std::string_view text) {
    return std::make_shared<MemoryImage>(std::vector<uint8_t>(text.begin(), text.end()), "text");
  }

  FileImagePtr perf_map_ = Text("1000 100 jit_a\n1100 100 jit_b\n7f0000000000 100000 jit_c\n");
  FileImagePtr kallsyms_ = Text(
      "ffffffff81000000 T _text\nffffffff81000100 T k_inner\nffffffff81000200 T k_outer\n"
      "ffffffffc0000000 t m_inner\t[mod]\n");
  FileImagePtr binary_ = std::make_shared<MemoryImage>(analyze::MakeFile(), "binary");
  FileImagePtr jit_dump_ = std::make_shared<MemoryImage>(MakeJitDump(), "jit-1.dump");
};

class ScriptSink : public analyze::AnalysisSink {
 public:
  explicit ScriptSink(analyze::Analysis& analysis) : formatter_(analysis, {}) {}
  Status OnSample(const analyze::AnalyzedSample& sample) override {
    CHECK(sample.frames.size() <= kMaxFrames);
    text_.clear();
    TRY(formatter_.AppendText(sample, text_));
    return formatter_.AppendJson(sample, text_);
  }
  static constexpr size_t kMaxFrames = 64;

 private:
  views::ScriptFormatter formatter_;
  std::string text_;
};

class DumpSink : public perfdata::RecordSink {
 public:
  explicit DumpSink(const perfdata::Reader& reader) : reader_(reader) {}
  Status OnRecord(const perfdata::RawRecord& raw) override {
    const auto event = reader_.events().IndexOf(raw, reader_.endian());
    perfdata::DumpContext context;
    context.endian = reader_.endian();
    context.attr = event ? &reader_.events().events()[*event].attr : nullptr;
    context.arch = reader_.features().arch;
    CHECK(!perfdata::DumpRecord(raw, context).empty());
    return {};
  }

 private:
  const perfdata::Reader& reader_;
};

void Report(ByteView bytes, AnyFiles& files) {
  MemorySource source(bytes, /*seekable=*/false, 13);
  auto reader = perfdata::Reader::Open(source);
  if (!reader) return;
  InlineExecutor executor;
  analyze::AnalysisOptions options;
  options.max_frames = ScriptSink::kMaxFrames;
  analyze::Analysis analysis(**reader, files, executor, options);
  const auto profile = analyze::MakeProfile(analysis, {.times = true});
  if (!profile) return;
  views::ReportOptions report;
  report.header = report.stats = true;
  CHECK(!views::TextReport(*profile, report).empty());
  report.graph = views::CallGraph::kCallee;
  report.children = false;
  CHECK(!views::JsonReport(*profile, report).empty());
}

void Script(ByteView bytes, AnyFiles& files) {
  MemorySource source(bytes);
  auto reader = perfdata::Reader::Open(source);
  if (!reader) return;
  InlineExecutor executor;
  analyze::AnalysisOptions options;
  options.max_frames = ScriptSink::kMaxFrames;
  analyze::Analysis analysis(**reader, files, executor, options);
  ScriptSink sink(analysis);
  (void)analysis.Run(sink);
}

void Dump(ByteView bytes) {
  MemorySource source(bytes);
  auto reader = perfdata::Reader::Open(source);
  if (!reader) return;
  DumpSink sink(**reader);
  (void)(*reader)->ReadAll(sink);
  (void)perfdata::DescribeFeatures((*reader)->features(), (*reader)->endian());
}

}  // namespace
}  // namespace stackreel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const stackreel::ByteView bytes(data, size);
  static stackreel::AnyFiles files;
  stackreel::Report(bytes, files);
  stackreel::Script(bytes, files);
  stackreel::Dump(bytes);
  return 0;
}
