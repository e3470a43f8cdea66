// Writes the recordings that the command-line goldens read, and the binaries and kallsyms that
// belong to them, into a folder: the same bytes each time.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/memory_io.h"
#include "elf/elf_writer.h"
#include "guest_recording.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"
#include "perfdata/writer.h"
#include "shop_trace.h"
#include "signed_recording.h"
#include "support/write_file.h"

namespace stackreel {
namespace {

// One binary and its functions, each 0x100 bytes from 0x1000 on; mapped at `base`.
struct Binary {
  const char* path;
  uint64_t base;
  std::vector<const char*> functions;
  bool exists = true;  // the file is written
};

const Binary kShop = {"/opt/shop/bin/shop",
                      0x400000,
                      {"main", "serve", "_ZN5Order5parseERKSs", "render", "price", "log_line"},
                      true};
const Binary kZip = {"/opt/shop/lib/libzip.so.1", 0x7f0000000000, {"deflate", "crc32"}, true};
const Binary kGone = {"/opt/shop/lib/libgone.so", 0x7f0000100000, {"", ""}, false};
constexpr uint64_t kKernelBase = 0xffffffff81000000;
const std::vector<const char*> kKernelFunctions = {"_stext", "do_syscall_64", "vfs_read",
                                                   "copy_to_user"};
constexpr uint64_t kFunctionSize = 0x100;

// What is there of `recording`, a whole file, when its recorder was killed: no size of the data,
// and nothing behind it.
std::vector<uint8_t> Killed(ByteView recording) {
  constexpr size_t kDataOffset = 40, kDataSize = 48;
  const auto offset = LoadUnaligned<uint64_t>(recording.data() + kDataOffset, Endian::kLittle);
  const auto size = LoadUnaligned<uint64_t>(recording.data() + kDataSize, Endian::kLittle);
  std::vector<uint8_t> out(recording.begin(),
                           recording.begin() + static_cast<ptrdiff_t>(offset + size));
  StoreUnaligned<uint64_t>(out.data() + kDataSize, 0, Endian::kLittle);
  return out;
}

Status WriteBinary(const std::filesystem::path& folder, const Binary& binary) {
  elf::ElfWriter elf;
  const uint32_t text =
      elf.Add({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .addr = 0x1000,
               .bytes = std::vector<uint8_t>(kFunctionSize * binary.functions.size(), 0xcc),
               .align = 0x1000});
  elf.AddSegment(PT_LOAD, PF_R | PF_X, text);
  std::vector<elf::ElfWriter::NewSymbol> symbols;
  symbols.reserve(binary.functions.size());
  for (size_t i = 0; i < binary.functions.size(); ++i) {
    symbols.push_back(
        {.name = binary.functions[i], .value = 0x1000 + kFunctionSize * i, .size = kFunctionSize});
  }
  elf.AddSymbols(SHT_SYMTAB, symbols);
  return WriteFile(folder / std::string(binary.path).substr(1), elf.Take());
}

Status WriteKallsyms(const std::filesystem::path& folder) {
  std::string text;
  for (size_t i = 0; i < kKernelFunctions.size(); ++i) {
    text += fmt::format("{:016x} T {}\n", kKernelBase + kFunctionSize * i, kKernelFunctions[i]);
  }
  text += fmt::format("{:016x} T _etext\n", kKernelBase + 0x1000);
  return WriteFile(folder / "kallsyms", AsBytes(text));
}

// A frame: function `index` of a binary (null: the kernel).
struct Spot {
  const Binary* binary;
  size_t index;
};
uint64_t AddressOf(const Spot& spot, uint64_t offset) {
  const uint64_t base = spot.binary == nullptr ? kKernelBase : spot.binary->base;
  const uint64_t start = spot.binary == nullptr ? 0 : 0x1000;
  return base + start + kFunctionSize * spot.index + offset;
}

// A stack, innermost first, and how often it was seen.
struct Seen {
  uint32_t tid;
  uint32_t event;
  std::vector<Spot> frames;
  int count;
};

class Recording {
 public:
  explicit Recording(perfdata::WriterOptions options)
      : options_(options), sink_(options.container == perfdata::Container::kFile) {}

  Status Begin() {
    std::vector<perfdata::Event> events;
    for (uint64_t config : {0u, 3u}) {  // cycles, cache-misses
      perfdata::Event event;
      event.attr.type = perfdata::kTypeHardware;
      event.attr.config = config;
      event.attr.sample_period_or_freq = 1000;
      event.attr.sample_type = kSampleType;
      event.attr.flags = perfdata::kAttrSampleIdAll | perfdata::kAttrMmap | perfdata::kAttrMmap2 |
                         perfdata::kAttrComm | perfdata::kAttrTask;
      event.ids = {10 + config};
      event.name = config == 0 ? "cycles" : "cache-misses";
      events.push_back(event);
    }
    attr_ = events[0].attr;
    TRY_ASSIGN(writer_, perfdata::Writer::Create(sink_, options_, events));
    features_ = {
        {static_cast<uint32_t>(perfdata::Feature::kHostname), Text("shophost")},
        {static_cast<uint32_t>(perfdata::Feature::kOsRelease), Text("6.1.0-test")},
        {static_cast<uint32_t>(perfdata::Feature::kVersion), Text("6.1")},
        {static_cast<uint32_t>(perfdata::Feature::kArch), Text("x86_64")},
        {static_cast<uint32_t>(perfdata::Feature::kCmdline),
         perfdata::EncodeStringList({"perf", "record", "-g", "./shop"}, options_.endian)},
    };
    return writer_->WriteEarlyFeatures(features_);
  }

  Status Processes() {
    perfdata::Mmap kernel;
    kernel.pid = UINT32_MAX;
    kernel.addr = kernel.pgoff = kKernelBase;
    kernel.len = 0x1000;
    kernel.filename = "[kernel.kallsyms]_stext";
    TRY(Write(perfdata::RecordType::kMmap, 1, kernel));
    TRY(Write(perfdata::RecordType::kComm, 0, perfdata::Comm{1000, 1000, "shop"}));
    for (const Binary* binary : {&kShop, &kZip, &kGone}) {
      perfdata::Mmap2 map;
      map.pid = map.tid = 1000;
      map.addr = binary->base + 0x1000;
      map.len = 0x1000;
      map.pgoff = 0x1000;
      map.prot = 5;
      map.flags = 2;
      map.filename = binary->path;
      TRY(Write(perfdata::RecordType::kMmap2, 2, map));
    }
    TRY(Write(perfdata::RecordType::kFork, 0, perfdata::Task{1000, 1000, 1001, 1000, time_}));
    return Write(perfdata::RecordType::kComm, 0, perfdata::Comm{1000, 1001, "worker"});
  }

  Status Samples(const std::vector<Seen>& stacks) {
    for (const Seen& seen : stacks) {
      for (int i = 0; i < seen.count; ++i) TRY(WriteSample(seen));
    }
    return {};
  }
  Status Lost(uint64_t count) {
    return Write(perfdata::RecordType::kLost, 0, perfdata::Lost{10, count});
  }
  Result<std::vector<uint8_t>> End() {
    TRY(Write(perfdata::RecordType::kFinishedRound, 0, perfdata::FinishedRound{}));
    TRY(writer_->Finish(features_));
    return sink_.bytes();
  }

 private:
  static constexpr uint64_t kSampleType = perfdata::kSampleIdentifier | perfdata::kSampleIp |
                                          perfdata::kSampleTid | perfdata::kSampleTime |
                                          perfdata::kSampleCpu | perfdata::kSamplePeriod |
                                          perfdata::kSampleCallchain;

  std::vector<uint8_t> Text(const std::string& text) const {
    return perfdata::EncodeString(text, options_.endian);
  }

  Status Write(perfdata::RecordType type, uint16_t misc, perfdata::RecordBody body) {
    perfdata::Record record;
    record.type = static_cast<uint32_t>(type);
    record.misc = misc;
    record.body = std::move(body);
    if (record.type < 64) {
      perfdata::SampleId id;
      id.present = kSampleType &
                   ~(perfdata::kSampleIp | perfdata::kSamplePeriod | perfdata::kSampleCallchain);
      id.pid = id.tid = 1000;
      id.time = time_ += 1000;
      id.id = 10;
      record.sample_id = id;
    }
    return writer_->WriteRecord(record);
  }

  Status WriteSample(const Seen& seen) {
    std::vector<uint64_t> chain;
    bool kernel = false;
    bool user = false;
    for (size_t i = 0; i < seen.frames.size(); ++i) {
      const bool in_kernel = seen.frames[i].binary == nullptr;
      if (in_kernel && !kernel) chain.push_back(perfdata::kContextKernel);
      if (!in_kernel && !user) chain.push_back(perfdata::kContextUser);
      kernel |= in_kernel;
      user |= !in_kernel;
      // The sampled instruction moves about in its function; return addresses stay.
      chain.push_back(AddressOf(seen.frames[i], i == 0 ? 0x10 + time_ / 10'000'000 % 8 : 0x40));
    }
    ByteWriter bytes(options_.endian);
    for (uint64_t ip : chain) bytes.U64(ip);
    perfdata::Sample sample;
    sample.present = kSampleType;
    sample.id = seen.event == 0 ? 10 : 13;
    sample.ip = chain[1];
    sample.pid = 1000;
    sample.tid = seen.tid;
    sample.time = time_ += 10'000'000;
    sample.cpu = seen.tid == 1000 ? 0 : 1;
    sample.period = seen.event == 0 ? 1000 : 50;
    sample.callchain = perfdata::U64Array(bytes.view(), options_.endian);
    return writer_->WriteSample(sample, seen.frames[0].binary == nullptr ? 1 : 2, seen.event);
  }

  perfdata::WriterOptions options_;
  MemorySink sink_;
  perfdata::Attr attr_;
  std::unique_ptr<perfdata::Writer> writer_;
  std::map<uint32_t, std::vector<uint8_t>> features_;
  uint64_t time_ = 5'000'000'000;
};

// Where the shop spends its time; `scale` makes parsing dearer.
std::vector<Seen> ShopStacks(int scale) {
  const Spot main = {&kShop, 0};
  const Spot serve = {&kShop, 1};
  const Spot parse = {&kShop, 2};
  const Spot render = {&kShop, 3};
  const Spot price = {&kShop, 4};
  const Spot log_line = {&kShop, 5};
  const Spot deflate = {&kZip, 0};
  const Spot crc32 = {&kZip, 1};
  const Spot gone = {&kGone, 0};
  const Spot syscall = {nullptr, 1};
  const Spot vfs_read = {nullptr, 2};
  const Spot copy = {nullptr, 3};
  return {
      {1000, 0, {parse, serve, main}, 30 * scale},
      {1000, 0, {price, render, serve, main}, 20},
      {1000, 0, {price, price, price, render, serve, main}, 6},  // recursion
      {1000, 0, {copy, vfs_read, syscall, parse, serve, main}, 12},
      {1001, 0, {crc32, deflate, render, serve}, 16},
      {1001, 0, {gone, log_line, serve}, 6},
      {1001, 0, {log_line, serve}, 4},
      {1001, 1, {copy, vfs_read, syscall, deflate, serve}, 9},
      {1000, 1, {parse, serve, main}, 3},
  };
}

Result<std::vector<uint8_t>> Shop(const perfdata::WriterOptions& options, int scale) {
  Recording recording(options);
  TRY(recording.Begin());
  TRY(recording.Processes());
  TRY(recording.Samples(ShopStacks(scale)));
  TRY(recording.Lost(4));
  return recording.End();
}

Result<std::vector<uint8_t>> Empty() {
  Recording recording({});
  TRY(recording.Begin());
  TRY(recording.Processes());
  return recording.End();
}

// Records of all the kinds that script shows among samples, and samples with branches.
class MixedRecording {
 public:
  Result<std::vector<uint8_t>> Write() {
    perfdata::Event event;
    event.attr.type = perfdata::kTypeHardware;
    event.attr.sample_period_or_freq = 1000;
    event.attr.sample_type = kSampleType;
    event.attr.branch_sample_type = 1;
    event.attr.flags = perfdata::kAttrSampleIdAll | perfdata::kAttrMmap | perfdata::kAttrMmap2 |
                       perfdata::kAttrComm | perfdata::kAttrTask | perfdata::kAttrContextSwitch;
    event.ids = {10};
    event.name = "cycles";
    TRY_ASSIGN(writer_, perfdata::Writer::Create(sink_, {}, {event}));
    TRY(Records());
    TRY(Branches());
    TRY(Add(perfdata::RecordType::kExit, 0, perfdata::Task{1000, 1, 1001, 1000, time_}));
    TRY(Add(perfdata::RecordType::kFinishedRound, 0, perfdata::FinishedRound{}));
    TRY(writer_->Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                          perfdata::EncodeString("x86_64", kNativeEndian)}}));
    return sink_.bytes();
  }

 private:
  static constexpr uint64_t kSampleType = perfdata::kSampleIdentifier | perfdata::kSampleIp |
                                          perfdata::kSampleTid | perfdata::kSampleTime |
                                          perfdata::kSampleCpu | perfdata::kSampleBranchStack |
                                          perfdata::kSampleCgroup;

  Status Add(perfdata::RecordType type, uint16_t misc, perfdata::RecordBody body) {
    perfdata::Record record;
    record.type = static_cast<uint32_t>(type);
    record.misc = misc;
    record.body = std::move(body);
    perfdata::SampleId id;
    id.present = perfdata::kSampleIdentifier | perfdata::kSampleTid | perfdata::kSampleTime |
                 perfdata::kSampleCpu;
    id.pid = id.tid = 1000;
    id.time = time_ += 1000;
    id.id = 10;
    if (record.type < 64) record.sample_id = id;
    return writer_->WriteRecord(record);
  }

  Status Records() {
    using perfdata::RecordType;
    perfdata::Mmap kernel;
    kernel.pid = UINT32_MAX;
    kernel.addr = kernel.pgoff = kKernelBase;
    kernel.len = 0x1000;
    kernel.filename = "[kernel.kallsyms]_stext";
    TRY(Add(RecordType::kMmap, 1, kernel));
    TRY(Add(RecordType::kCgroup, 0, perfdata::Cgroup{7, "/shop.slice"}));
    TRY(Add(RecordType::kComm, perfdata::kMiscCommExec, perfdata::Comm{1000, 1000, "shop"}));
    perfdata::Mmap2 map;
    map.pid = map.tid = 1000;
    map.addr = kShop.base + 0x1000;
    map.len = map.pgoff = 0x1000;
    map.maj = 8;
    map.min = 3;
    map.ino = 77;
    map.prot = 5;
    map.flags = 2;
    map.filename = kShop.path;
    TRY(Add(RecordType::kMmap2, 2, map));
    map.addr = kZip.base + 0x1000;
    map.pgoff = 0;
    map.prot = 7;
    map.flags = 1;
    map.build_id = *BuildId::FromHex("ab12cd34ab12cd34ab12cd34ab12cd34ab12cd34");
    map.filename = kZip.path;
    TRY(Add(RecordType::kMmap2, 2 | perfdata::kMiscMmapBuildId, map));
    perfdata::Namespaces namespaces{1000, 1000, {}};
    for (uint64_t i = 0; i < 7; ++i) namespaces.links.push_back({4, 0xeffffff8 + i});
    TRY(Add(RecordType::kNamespaces, 0, namespaces));
    TRY(Add(RecordType::kFork, 0, perfdata::Task{1000, 1000, 1001, 1000, time_}));
    TRY(Add(RecordType::kComm, 0, perfdata::Comm{1000, 1001, "worker"}));
    TRY(Add(RecordType::kSwitch, perfdata::kMiscSwitchOut, perfdata::Switch{}));
    TRY(Add(RecordType::kSwitch, perfdata::kMiscSwitchOut | perfdata::kMiscSwitchOutPreempt,
            perfdata::Switch{}));
    TRY(Add(RecordType::kSwitch, 0, perfdata::Switch{}));
    TRY(Add(RecordType::kSwitchCpuWide, perfdata::kMiscSwitchOut,
            perfdata::SwitchCpuWide{1000, 1001}));
    TRY(Add(RecordType::kSwitchCpuWide, 0, perfdata::SwitchCpuWide{1000, 1001}));
    TRY(Add(RecordType::kKsymbol, 0,
            perfdata::Ksymbol{0xffffffffc0001000, 0x80, 1, 0, "bpf_prog_1234"}));
    TRY(Add(RecordType::kBpfEvent, 0, perfdata::BpfEvent{1, 0, 12, {}}));
    return Add(RecordType::kLost, 0, perfdata::Lost{10, 4});
  }

  // Within the program, from it into the kernel and back, and to nowhere.
  Status Branches() {
    ByteWriter words;
    const auto branch = [&words](uint64_t from, uint64_t to, uint64_t flags) {
      words.U64(from);
      words.U64(to);
      words.U64(flags);
    };
    branch(AddressOf({&kShop, 4}, 0x20), AddressOf({&kShop, 3}, 0x44), 2 | 12 << 4 | 6 << 20);
    branch(AddressOf({&kShop, 3}, 0x40), AddressOf({&kShop, 4}, 0), 1 | 4 << 20);
    branch(AddressOf({nullptr, 1}, 0x30), AddressOf({&kShop, 2}, 0x18), 2 | 8 << 20);
    branch(AddressOf({&kShop, 2}, 0x16), AddressOf({nullptr, 1}, 0), 2 | 7 << 20);
    branch(AddressOf({&kZip, 0}, 0x10), AddressOf({&kShop, 0}, 0x8), 4 | 8 | 3 << 20);
    branch(0, 0, 0);
    perfdata::Sample sample;
    sample.present = kSampleType;
    sample.id = 10;
    sample.ip = AddressOf({&kShop, 3}, 0x44);
    sample.pid = sample.tid = 1000;
    sample.time = time_ += 1000;
    sample.branches = perfdata::BranchArray(words.view(), kNativeEndian);
    sample.cgroup = 7;
    TRY(writer_->WriteSample(sample, 2, 0));
    sample.branches = {};
    sample.cgroup = 8;
    sample.time = time_ += 1000;
    return writer_->WriteSample(sample, 2, 0);
  }

  MemorySink sink_;
  std::unique_ptr<perfdata::Writer> writer_;
  uint64_t time_ = 5'000'000'000;
};

Status WriteAll(const std::filesystem::path& folder) {
  for (const Binary* binary : {&kShop, &kZip, &kGone}) {
    if (binary->exists) TRY(WriteBinary(folder, *binary));
  }
  TRY(WriteKallsyms(folder));
  perfdata::WriterOptions options;
  options.endian = Endian::kLittle;
  TRY_ASSIGN(const std::vector<uint8_t> shop, Shop(options, 1));
  TRY(WriteFile(folder / "shop.data", shop));
  TRY(WriteFile(folder / "cut.data", ByteView(shop).first(shop.size() / 2)));
  TRY(WriteFile(folder / "killed.data", Killed(shop)));
  TRY_ASSIGN(const std::vector<uint8_t> slow, Shop(options, 3));
  TRY(WriteFile(folder / "slow.data", slow));
  options.container = perfdata::Container::kPipe;
  TRY_ASSIGN(const std::vector<uint8_t> pipe, Shop(options, 1));
  TRY(WriteFile(folder / "shop.pipe", pipe));
  TRY_ASSIGN(const std::vector<uint8_t> mixed, MixedRecording().Write());
  TRY(WriteFile(folder / "mixed.data", mixed));
  TRY_ASSIGN(const std::vector<uint8_t> with_signatures, SignedRecording(kShop.path, kShop.base));
  TRY(WriteFile(folder / "signed.data", with_signatures));
  TRY_ASSIGN(const std::vector<uint8_t> said_by_kernel,
             SignedRecording(kShop.path, kShop.base, MasksOf::kKernel));
  TRY(WriteFile(folder / "ptr_auth.data", said_by_kernel));
  TRY_ASSIGN(const std::vector<uint8_t> with_guest, GuestRecording(kShop.path, kShop.base));
  TRY(WriteFile(folder / "guest.data", with_guest));
  TRY(WriteShopTraces(folder));
  TRY_ASSIGN(const std::vector<uint8_t> empty, Empty());
  return WriteFile(folder / "empty.data", empty);
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: make_recordings FOLDER\n");
    return 2;
  }
  if (const stackreel::Status status = stackreel::WriteAll(argv[1]); !status) {
    fmt::print(stderr, "{}\n", status.error().ToString());
    return 1;
  }
  return 0;
}
