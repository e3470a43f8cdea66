// For tests: recordings written record by record, and the files that their modules need.
#pragma once

#include <elf.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyze/analysis.h"
#include "base/check.h"
#include "base/memory_io.h"
#include "dwarf/frame_builder.h"
#include "elf/elf_writer.h"
#include "perfdata/writer.h"

namespace stackreel::analyze {

inline constexpr uint16_t kUserMode = 2;
inline constexpr uint16_t kKernelMode = 1;

// Registers in perf's numbers for x86-64: all that user-space unwinding asks for.
inline constexpr uint64_t kRegisterMask = 0xff0fff;
inline constexpr unsigned kSpIndex = 7, kIpIndex = 8;  // among the dumped ones

// Where the tests load their programs: avma - svma.
inline constexpr uint64_t kBias = 0x555500000000;

// An attr of a software event with trailers.
inline perfdata::Event MakeEvent(uint64_t sample_type, uint64_t id, std::string name) {
  perfdata::Event event;
  event.attr.type = perfdata::kTypeSoftware;
  event.attr.sample_type = sample_type | perfdata::kSampleIdentifier;
  event.attr.flags = perfdata::kAttrSampleIdAll | perfdata::kAttrMmap | perfdata::kAttrMmap2;
  event.attr.sample_period_or_freq = 1000;
  event.attr.sample_regs_user = (sample_type & perfdata::kSampleRegsUser) != 0 ? kRegisterMask : 0;
  event.attr.sample_stack_user = (sample_type & perfdata::kSampleStackUser) != 0 ? 4096 : 0;
  event.ids = {id};
  event.name = std::move(name);
  return event;
}

inline constexpr uint64_t kPlainSample =
    perfdata::kSampleIp | perfdata::kSampleTid | perfdata::kSampleTime;
inline constexpr uint64_t kChainSample = kPlainSample | perfdata::kSampleCallchain;

// A recording in memory. Times are counted up by one where none is given.
class FakeRecording {
 public:
  explicit FakeRecording(std::vector<perfdata::Event> events = {MakeEvent(kChainSample, 1, "e")},
                         Endian endian = Endian::kLittle)
      : events_(events) {
    perfdata::WriterOptions options;
    options.endian = endian;
    auto writer = perfdata::Writer::Create(sink_, options, std::move(events));
    CHECK(writer.has_value());
    writer_ = std::move(*writer);
    endian_ = endian;
  }

  void Mmap(uint32_t pid, uint64_t addr, uint64_t len, uint64_t pgoff, std::string name) {
    perfdata::Mmap2 mmap;
    mmap.pid = mmap.tid = pid;
    mmap.addr = addr;
    mmap.len = len;
    mmap.pgoff = pgoff;
    mmap.prot = 5;
    mmap.flags = 2;
    mmap.filename = std::move(name);
    Add(perfdata::RecordType::kMmap2, kUserMode, mmap);
  }
  void KernelMmap(uint64_t addr, uint64_t len, std::string name, uint16_t misc = kKernelMode) {
    Add(perfdata::RecordType::kMmap, misc,
        perfdata::Mmap{UINT32_MAX, 0, addr, len, 0, std::move(name)});
  }
  void Comm(uint32_t pid, uint32_t tid, std::string comm) {
    Add(perfdata::RecordType::kComm, 0, perfdata::Comm{pid, tid, std::move(comm)});
  }
  void Add(perfdata::RecordType type, uint16_t misc, perfdata::RecordBody body, uint32_t tid = 1) {
    perfdata::Record record{static_cast<uint32_t>(type), misc, std::move(body), {}};
    if (static_cast<uint32_t>(type) < 64) {
      perfdata::SampleId id;
      id.present = events_[0].attr.sample_type &
                   (perfdata::kSampleTid | perfdata::kSampleTime | perfdata::kSampleIdentifier);
      id.pid = id.tid = tid;
      id.time = ++time_;
      id.id = events_[0].ids[0];
      record.sample_id = id;
    }
    CHECK(writer_->WriteRecord(record).has_value());
  }
  // Fills what is not set: presence bits, id, ids of process 1, and time.
  void Sample(perfdata::Sample sample, uint16_t misc = kUserMode, uint32_t event = 0) {
    sample.present = events_[event].attr.sample_type;
    sample.id = events_[event].ids[0];
    if (sample.pid == 0) sample.pid = sample.tid = 1;
    if (sample.time == 0) sample.time = ++time_;
    CHECK(writer_->WriteSample(sample, misc, event).has_value());
  }
  // A sample with a chain; its ip is the first address.
  void Chain(const std::vector<uint64_t>& chain, uint16_t misc = kUserMode, uint32_t tid = 1) {
    perfdata::Sample sample;
    sample.pid = 1;
    sample.tid = tid;
    const auto first = std::find_if(chain.begin(), chain.end(),
                                    [](uint64_t ip) { return ip < perfdata::kContextMax; });
    if (first != chain.end()) sample.ip = *first;
    const std::vector<uint8_t> bytes = Words(chain);
    sample.callchain = perfdata::U64Array(bytes, endian_);
    Sample(sample, misc);
  }
  std::vector<uint8_t> Words(const std::vector<uint64_t>& words) const {
    ByteWriter out(endian_);
    for (const uint64_t word : words) out.U64(word);
    return out.Take();
  }
  void Arch(const std::string& arch) {
    features_[static_cast<uint32_t>(perfdata::Feature::kArch)] =
        perfdata::EncodeString(arch, endian_);
  }
  void StackEnds(const std::map<std::string, uint64_t>& ends) {
    features_[static_cast<uint32_t>(perfdata::Feature::kStackreelStackEnds)] =
        perfdata::EncodeStackEnds(ends, endian_);
  }
  std::vector<uint8_t> Take() {
    CHECK(writer_->Finish(features_).has_value());
    return sink_.bytes();
  }

 private:
  std::vector<perfdata::Event> events_;
  Endian endian_ = Endian::kLittle;
  MemorySink sink_;
  std::unique_ptr<perfdata::Writer> writer_;
  std::map<uint32_t, std::vector<uint8_t>> features_;
  uint64_t time_ = 0;
};

// A file whose functions "f1000" [0x1000, 0x1100), "f2000", "f3000" have frames of one word: the
// return address is at the stack pointer. "start" at 0x4000 is outermost.
inline std::vector<uint8_t> MakeFile() {
  elf::ElfWriter writer(elf::Class::k64, Endian::kLittle, EM_X86_64);
  dwarf::FrameBuilder frames(Svma(0x8000));
  const uint64_t cie = frames.AddCie();
  for (const uint64_t start : {0x1000, 0x2000, 0x3000})
    frames.AddFde(cie, start, 0x100, dwarf::CfaCode());
  frames.AddFde(cie, 0x4000, 0x100, dwarf::CfaCode().Undefined(16));
  const uint32_t text = writer.Add({.name = ".text",
                                    .flags = SHF_ALLOC | SHF_EXECINSTR,
                                    .addr = 0x1000,
                                    .bytes = std::vector<uint8_t>(0x4000, 0x90)});
  const uint32_t eh_frame = writer.Add({.name = ".eh_frame",
                                        .flags = SHF_ALLOC,
                                        .addr = 0x8000,
                                        .bytes = elf::ElfWriter::Copy(frames.view())});
  writer.AddSegment(PT_LOAD, PF_R | PF_X, text);
  writer.AddSegment(PT_LOAD, PF_R, eh_frame);
  const auto function = [&](const char* name, uint64_t value) {
    return elf::ElfWriter::NewSymbol{
        .name = name, .value = value, .size = 0x100, .type = STT_FUNC, .section = 1};
  };
  writer.AddSymbols(SHT_SYMTAB, {function("f1000", 0x1000), function("f2000", 0x2000),
                                 function("f3000", 0x3000), function("start", 0x4000)});
  return writer.Take();
}
// Where MakeFile's text lies in the file.
inline uint64_t TextOffset(const std::vector<uint8_t>& file) {
  const auto image = elf::Image::Parse(file);
  CHECK(image.has_value());
  return image->segments()[0].offset;
}

// Files by module path; symbols of "[kernel.kallsyms]" as text.
class FakeFiles : public symbolize::ModuleFileProvider {
 public:
  symbolize::ModuleFiles FilesOf(const session::Module& module) override {
    symbolize::ModuleFiles files;
    if (module.path() == "[kernel.kallsyms]") {
      files.kallsyms = std::make_shared<TextImage>(
          "ffffffff81000000 T _text\nffffffff81000100 T k_inner\nffffffff81000200 T k_outer\n");
    } else if (const auto it = elf.find(module.path()); it != elf.end()) {
      files.main = std::make_shared<MemoryImage>(it->second, module.path());
    } else {
      files.why = "no file";
    }
    return files;
  }
  std::map<std::string, std::vector<uint8_t>> elf;
};

// What a sink was given, as text: "comm 1/2 t=3: f1000 f2000 [kernel]k_inner …".
class TextSink : public AnalysisSink {
 public:
  Status OnSample(const AnalyzedSample& sample) override {
    lines.push_back(LineOf(sample));
    periods.push_back(sample.period);
    return status;
  }
  std::unique_ptr<Portion> MakePortion(size_t /*workers*/) override {
    return by_portions ? std::make_unique<Lines>() : nullptr;
  }
  Status Prepare(const AnalyzedSample& sample, size_t /*worker*/, Portion& portion) override {
    static_cast<Lines&>(portion).lines.push_back(LineOf(sample));
    return status;
  }
  Status OnPortion(Portion& portion) override {
    std::vector<std::string>& more = static_cast<Lines&>(portion).lines;
    lines.insert(lines.end(), more.begin(), more.end());
    more.clear();
    ++portions;
    return {};
  }
  Analysis* analysis = nullptr;
  bool by_portions = false;
  std::vector<std::string> lines;
  std::vector<uint64_t> periods;
  size_t portions = 0;
  Status status;

 private:
  struct Lines : Portion {
    std::vector<std::string> lines;
  };
  [[nodiscard]] std::string LineOf(const AnalyzedSample& sample) const {
    std::string line = std::string(analysis->session().strings().Text(sample.comm)) + ":";
    if (sample.has_callchain && sample.chain_is_empty) line += " (empty)";
    for (const AnalyzedFrame& frame : sample.frames) {
      line += ' ';
      if (frame.kernel) line += "k:";
      const auto name = frame.symbols.empty()
                            ? std::string_view()
                            : analysis->symbolizer().Text(frame.symbols.back().function);
      char number[32];
      std::snprintf(number, sizeof number, "%llx",
                    static_cast<unsigned long long>(frame.address.avma.value));
      line += name.empty() ? std::string(number) : std::string(name);
      if (frame.address.kind == CodeAddressKind::kReturnAddress) line += "'";
    }
    if (sample.user_end) line += std::string(" | ") + unwind::StackEndName(*sample.user_end);
    return line;
  }
};

// Three workers that take turns in the calling thread, the last index first.
class BackwardExecutor : public Executor {
 public:
  [[nodiscard]] size_t concurrency() const override { return 3; }
  void ParallelFor(size_t count, const std::function<void(size_t, size_t)>& work) override {
    for (size_t i = count; i-- > 0;) work(i, i % 3);
  }
};

}  // namespace stackreel::analyze
