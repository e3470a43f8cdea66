// Writes small recordings and jitdumps into corpus/perfdata, corpus/session, corpus/anonymize,
// corpus/jit_dump and corpus/patch_journal, for fuzzers to begin with: make_seeds CORPUS. The same
// bytes each time.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "analyze/fake_recording.h"
#include "base/check.h"
#include "base/memory_io.h"
#include "patch/fake_site.h"
#include "patch/journal.h"
#include "perfdata/compressor.h"
#include "perfdata/one_of_each.h"
#include "perfdata/synthetic_recording.h"
#include "perfdata/tracing_data.h"
#include "perfdata/writer.h"
#include "session/fake_jit_dump.h"

namespace stackreel {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t kLargest = 4096;

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void Add(const std::string& name, const Bytes& bytes) {
    CHECK(bytes.size() <= kLargest);
    std::filesystem::create_directories(folder_);
    std::ofstream file(folder_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    CHECK(file.good());
  }

 private:
  std::filesystem::path folder_;
};

const char* NameOf(Endian endian) { return endian == Endian::kLittle ? "le" : "be"; }

perfdata::Event SomeEvent(uint64_t id) {
  perfdata::Event event;
  event.attr = perfdata::one_of_each::TrailerAttr();
  event.ids = {id};
  event.name = fmt::format("event{}", id);
  return event;
}

// The records with the trailers that the event asks for.
Bytes Recording(const perfdata::WriterOptions& options,
                const std::vector<perfdata::Record>& records) {
  MemorySink sink(options.container == perfdata::Container::kFile);
  auto writer = perfdata::Writer::Create(sink, options, {SomeEvent(7), SomeEvent(8)});
  CHECK(writer);
  const uint64_t fields = SomeEvent(7).attr.sample_type & ~perfdata::kSampleIp;
  uint64_t time = 0;
  for (perfdata::Record record : records) {
    if (record.type < 64) record.sample_id = perfdata::SampleId{fields, 1, 2, ++time, 7, 5, 6, 7};
    CHECK((*writer)->WriteRecord(record));
  }
  perfdata::Sample sample;
  sample.present = SomeEvent(7).attr.sample_type;
  sample.id = 7;
  sample.ip = 0x401000;
  sample.pid = sample.tid = 1;
  sample.time = ++time;
  CHECK((*writer)->WriteSample(sample, 2, 0));
  const std::map<uint32_t, Bytes> features = {{static_cast<uint32_t>(perfdata::Feature::kHostname),
                                               perfdata::EncodeString("host", options.endian)}};
  CHECK((*writer)->Finish(features));
  return sink.bytes();
}

// A file whose records lie in records of type 81 or 83, cut in the middle of a record.
Bytes Compressed(const Bytes& records, bool with_size) {
  auto compressor = perfdata::Compressor::Create(1);
  CHECK(compressor);
  ByteWriter packed(Endian::kLittle);
  const size_t half = records.size() / 2 + 3;
  CHECK((*compressor)->Compress(ByteView(records).first(half), false, packed));
  const size_t first = packed.size();
  CHECK((*compressor)->Compress(ByteView(records).subspan(half), false, packed));
  if (!with_size) return perfdata::synthetic::FileBytes(packed.Take());
  const Bytes all = packed.Take();
  ByteWriter out(Endian::kLittle);
  for (const ByteView record : {ByteView(all).first(first), ByteView(all).subspan(first)}) {
    const ByteView data = record.subspan(8);
    out.U32(83);
    out.U16(0);
    out.U16(static_cast<uint16_t>((16 + data.size() + 7) & ~size_t{7}));
    out.U64(data.size());
    out.Bytes(data);
    out.AlignTo(8);
  }
  return perfdata::synthetic::FileBytes(out.Take());
}

void MakeRecordings(Corpus& corpus) {
  std::vector<perfdata::Record> all = perfdata::one_of_each::KernelRecords();
  for (perfdata::Record& record : perfdata::one_of_each::UserRecords()) {
    if (record.type != static_cast<uint32_t>(perfdata::RecordType::kAuxtrace)) {
      all.push_back(std::move(record));
    }
  }
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    size_t number = 0;
    for (const perfdata::Record& record : all) {
      perfdata::WriterOptions options;
      options.endian = endian;
      options.container = number % 2 == 0 ? perfdata::Container::kFile : perfdata::Container::kPipe;
      corpus.Add(fmt::format("record{}_{}_{}", record.type, NameOf(endian), number++),
                 Recording(options, {record}));
    }
  }
  namespace synthetic = perfdata::synthetic;
  Bytes records = synthetic::CommBytes("prog", 100, 1);
  for (uint64_t i = 0; i < 20; ++i) {
    records = synthetic::Join({records, synthetic::SampleBytes(100, 10 + i)});
  }
  corpus.Add("compressed81", Compressed(records, false));
  corpus.Add("compressed83", Compressed(records, true));
  const Bytes trace(40, 0x5a);
  corpus.Add("auxtrace",
             synthetic::FileBytes(synthetic::Join(
                 {synthetic::RecordBytes(perfdata::RecordType::kAuxtrace,
                                         synthetic::Numbers({trace.size(), 0, 0, 0, 0})),
                  trace, records})));
}

// Recordings that analysis gets through to frames and names.
void MakeSessions(Corpus& corpus) {
  using namespace analyze;  // NOLINT: the one user of all its names
  constexpr uint64_t kBias = 0x555500000000;
  const uint64_t text = TextOffset(MakeFile());
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    perfdata::Event event = MakeEvent(kChainSample, 1, "e");
    event.attr.flags |= perfdata::kAttrPtrAuth;
    FakeRecording chains({event}, endian);
    chains.KernelMmap(0xffffffff81000000, 0x1000000, "[kernel.kallsyms]_text");
    chains.Mmap(1, kBias + 0x1000, 0x4000, text, "/bin/prog");
    chains.Mmap(1, 0x1000, 0x1000, 0, "//anon");
    chains.Mmap(1, 0x800000, 0x1000, 0, "/tmp/jit-1.dump");
    chains.Comm(1, 1, "prog");
    chains.Add(perfdata::RecordType::kFork, 0, perfdata::Task{2, 1, 2, 1, 0});
    chains.Chain({perfdata::kContextKernel, 0xffffffff81000110, perfdata::kContextUser,
                  kBias + 0x1010, kBias + 0x2100, 0x1010, 0x10a0, 0x1234},
                 kKernelMode);
    perfdata::Ksymbol symbol{0xffffffffc0001000, 0x100, 1, 0, "bpf_prog_1_f"};
    chains.Add(perfdata::RecordType::kKsymbol, 0, symbol);
    chains.Chain({perfdata::kContextKernel, 0xffffffffc0001010}, kKernelMode);
    chains.Chain({perfdata::kContextUser, kBias + 0x1010, perfdata::kContextUserDeferred, 5});
    chains.Add(perfdata::RecordType::kCallchainDeferred, 0,
               perfdata::CallchainDeferred{5, {perfdata::kContextUser, kBias + 0x3010}});
    chains.Add(perfdata::RecordType::kPtrAuth, 0,
               perfdata::PtrAuth{1, 1, 0x1f, 0x007f000000000000, 0x007f000000000000});
    chains.Add(perfdata::RecordType::kNamespaces, 0,
               perfdata::Namespaces{1, 1, std::vector<perfdata::NamespaceLink>(7, {3, 4})});
    chains.Add(perfdata::RecordType::kExit, 0, perfdata::Task{2, 1, 2, 1, 0});
    corpus.Add(fmt::format("chains_{}", NameOf(endian)), chains.Take());

    FakeRecording stacks(
        {MakeEvent(kPlainSample | perfdata::kSampleRegsUser | perfdata::kSampleStackUser, 1, "e")},
        endian);
    stacks.Arch("x86_64");
    stacks.Mmap(1, kBias + 0x1000, 0x4000, text, "/bin/prog");
    stacks.Comm(1, 1, "prog");
    perfdata::Sample sample;
    sample.regs_user.abi = 2;
    sample.regs_user.mask = kRegisterMask;
    std::vector<uint64_t> registers(20);
    registers[kSpIndex] = 0x7ffd0000;
    registers[kIpIndex] = kBias + 0x1010;
    const Bytes words = stacks.Words(registers);
    sample.regs_user.values = perfdata::U64Array(words, endian);
    const Bytes stack = stacks.Words({kBias + 0x2010, kBias + 0x3010, kBias + 0x4010, 0});
    sample.stack_user = stack;
    sample.stack_user_size = stack.size();
    stacks.Sample(sample);
    corpus.Add(fmt::format("stacks_{}", NameOf(endian)), stacks.Take());
  }
}

// What the tracepoint of the seeds is, with what goes when a recording is anonymised.
Bytes TracingDataOf(Endian endian) {
  static constexpr std::string_view kFormat =
      "name: probe\nID: 317\nformat:\n"
      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
      "\tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\n"
      "print fmt: \"%p\", REC->ptr\n";
  perfdata::TracingDataParts parts;
  parts.version = "0.6";
  parts.endian = endian;
  parts.page_size = 4096;
  parts.header_page = parts.header_event = "\tfield: u64 timestamp;\n";
  parts.systems = {{"demo", {kFormat}}};
  parts.kallsyms = "ffffffff81000000 T text\n";
  parts.printk_formats = "0xffffffff81000010 : \"literal\"\n";
  return perfdata::EncodeTracingData(parts);
}

// Guests, branches, raw data, data addresses: what anonymising has rules for.
void MakeHidden(Corpus& corpus) {
  using perfdata::RecordType;
  constexpr uint64_t kKernel = 0xffffffff81000000, kText = 0x555500000000;
  constexpr uint16_t kGuestKernel = 4, kGuestUser = 5;
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    perfdata::Event event = SomeEvent(7), tracepoint = SomeEvent(8);
    event.attr.sample_type |= perfdata::kSampleBranchStack | perfdata::kSampleAddr;
    tracepoint.attr.type = perfdata::kTypeTracepoint;
    tracepoint.attr.config = 317;
    tracepoint.attr.sample_type |= perfdata::kSampleRaw;
    MemorySink sink(true);
    auto writer = perfdata::Writer::Create(
        sink, {perfdata::Container::kFile, endian, endian == Endian::kBig ? 1 : 0},
        {event, tracepoint});
    CHECK(writer);
    uint64_t time = 0;
    const auto map = [&](uint32_t pid, uint64_t addr, uint64_t pgoff, const char* name,
                         uint16_t misc) {
      perfdata::Record record;
      record.type = static_cast<uint32_t>(RecordType::kMmap);
      record.misc = misc;
      record.body = perfdata::Mmap{pid, pid, addr, 0x4000, pgoff, name};
      record.sample_id = perfdata::SampleId{
          event.attr.sample_type & ~perfdata::kSampleIp, pid, pid, ++time, 7, 5, 6, 7};
      CHECK((*writer)->WriteRecord(record));
    };
    map(UINT32_MAX, kKernel, kKernel, "[kernel.kallsyms]_text", 1);
    map(UINT32_MAX, kKernel, kKernel, "[guest.kernel.kallsyms]_text", kGuestKernel);
    map(1, kText, 0, "/home/ilse/bin/prog", 2);
    map(1, kText + 0x100000, kText + 0x100000, "[heap]", 2);
    map(3, kText, 0, "/bin/guest", kGuestUser);
    ByteWriter words(endian);
    for (const uint64_t word : {kText + 1, kKernel + 2, uint64_t{0}}) words.U64(word);
    const Bytes branches = words.Take();
    for (const uint16_t misc : {uint16_t{1}, uint16_t{2}, kGuestKernel, kGuestUser}) {
      perfdata::Sample sample;
      sample.id = misc % 2 == 0 ? 7 : 8;
      sample.pid = sample.tid = misc == kGuestUser ? 3 : 1;
      sample.ip = (misc % 4 < 2 && misc != kGuestUser ? kKernel : kText) + misc;
      sample.addr = kText + 0x101008;
      sample.time = ++time;
      sample.branches = perfdata::BranchArray(branches, endian);
      sample.raw = ByteView(branches).first(20);
      CHECK((*writer)->WriteSample(sample, misc, misc % 2));
    }
    CHECK((*writer)->Finish(
        {{static_cast<uint32_t>(perfdata::Feature::kTracingData), TracingDataOf(endian)},
         {static_cast<uint32_t>(perfdata::Feature::kHostname),
          perfdata::EncodeString("host", endian)},
         {static_cast<uint32_t>(perfdata::Feature::kArch),
          perfdata::EncodeString("x86_64", endian)}}));
    corpus.Add(fmt::format("guests_{}", NameOf(endian)), sink.bytes());
  }
}

void MakeJitDumps(Corpus& corpus) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    session::FakeJitDump dump(endian);
    dump.Lines(1, 0x1000, {{0x1000, 1, "a.js"}, {0x1010, 2, "\xff"}});
    dump.UnwindingInfo(1, Bytes(24, 1));
    dump.Load(2, 0x1000, 0x40, "one", 0);
    dump.Load(3, 0x1020, 0x40, "two", 1);
    dump.Move(4, 0x1000, 0x3000, 0x40, 0);
    dump.Close(5);
    corpus.Add(NameOf(endian), dump.Take());
  }
}

void MakePatchJournals(Corpus& corpus) {
  const patch::Site all[] = {patch::FakeNop(0x1000), patch::FakeJump(0x2000),
                             patch::FakeShortJump(0x3000), patch::FakeSled(0x4000),
                             patch::FakeTrap(0x5000)};
  std::vector<const patch::Site*> sites;
  for (const patch::Site& site : all) sites.push_back(&site);
  corpus.Add("one_of_each", patch::EncodeSites(sites));
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_seeds CORPUS\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  stackreel::Corpus perfdata(folder / "perfdata");
  stackreel::MakeRecordings(perfdata);
  stackreel::Corpus session(folder / "session");
  stackreel::MakeSessions(session);
  stackreel::Corpus anonymize(folder / "anonymize");
  stackreel::MakeHidden(anonymize);
  stackreel::Corpus jit_dump(folder / "jit_dump");
  stackreel::MakeJitDumps(jit_dump);
  stackreel::Corpus patch_journal(folder / "patch_journal");
  stackreel::MakePatchJournals(patch_journal);
  return 0;
}
