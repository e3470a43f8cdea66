#include "record/synthesize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/byte_writer.h"
#include "elf/elf_writer.h"
#include "perfdata/pac_mask.h"
#include "session/session.h"

namespace stackreel::record {
namespace {

using perfdata::Record;

const ProcessFacts kSigned = {
    .data_mappings = false,
    .pointer_authentication =
        os::PointerAuthentication{
            .enabled_keys = 0xf, .insn_mask = 0x007f000000000000, .data_mask = 0x007e000000000000},
    .ptr_auth = {}};

class Collector {
 public:
  EmitRecord Emit() {
    return [this](const Record& record) -> Status {
      records.push_back(record);
      return {};
    };
  }
  std::vector<Record> records;
};

TEST(SynthesizeProcess, DescribesThisProcess) {
  Collector collector;
  BuildIdReader build_ids;
  const auto pid = static_cast<uint32_t>(getpid());
  ASSERT_TRUE(SynthesizeProcess(pid, {}, build_ids, collector.Emit()).has_value());
  ASSERT_GE(collector.records.size(), 3u);
  const Record& fork = collector.records[0];
  EXPECT_EQ(fork.type, static_cast<uint32_t>(perfdata::RecordType::kFork));
  EXPECT_NE(fork.misc & perfdata::kMiscForkExec, 0);
  EXPECT_EQ(std::get<perfdata::Task>(fork.body).pid, pid);
  EXPECT_EQ(std::get<perfdata::Comm>(collector.records[1].body).comm, "record_test");
  const auto here = reinterpret_cast<uint64_t>(&SynthesizeKernel);
  bool found = false;
  for (const Record& record : collector.records) {
    const auto* mmap = std::get_if<perfdata::Mmap2>(&record.body);
    if (mmap == nullptr) continue;
    EXPECT_NE(mmap->prot & PROT_EXEC, 0u);
    if (here < mmap->addr || here >= mmap->addr + mmap->len) continue;
    found = true;
    EXPECT_TRUE(mmap->filename.ends_with("/record_test"));
    EXPECT_NE(record.misc & perfdata::kMiscMmapBuildId, 0);
    EXPECT_EQ(mmap->build_id, *build_ids.Read(0, mmap->filename));
  }
  EXPECT_TRUE(found);
}

TEST(SynthesizeProcess, DataMappingsOnRequestAndMarked) {
  Collector collector;
  BuildIdReader build_ids;
  const auto pid = static_cast<uint32_t>(getpid());
  const ProcessFacts wanted = {.data_mappings = true, .pointer_authentication = {}, .ptr_auth = {}};
  ASSERT_TRUE(SynthesizeProcess(pid, wanted, build_ids, collector.Emit()).has_value());
  EXPECT_TRUE(std::ranges::any_of(collector.records, [](const Record& record) {
    const auto* mmap = std::get_if<perfdata::Mmap2>(&record.body);
    return mmap != nullptr && (mmap->prot & PROT_EXEC) == 0 &&
           (record.misc & perfdata::kMiscMmapData) != 0;
  }));
}

std::optional<perfdata::PacMask> MaskIn(const Record& record) {
  const auto* update = std::get_if<perfdata::EventUpdate>(&record.body);
  return update == nullptr ? std::nullopt : perfdata::PacMaskOf(*update, kNativeEndian);
}

TEST(SynthesizeProcess, HasItsMaskBehindItsForkWhereTheMachineHasOne) {
  BuildIdReader build_ids;
  const auto pid = static_cast<uint32_t>(getpid());
  Collector none;
  ASSERT_TRUE(SynthesizeProcess(pid, {}, build_ids, none.Emit()).has_value());
  EXPECT_FALSE(
      std::ranges::any_of(none.records, [](const Record& r) { return MaskIn(r).has_value(); }));

  Collector collector;
  ASSERT_TRUE(SynthesizeProcess(pid, kSigned, build_ids, collector.Emit()).has_value());
  EXPECT_EQ(std::ranges::count_if(collector.records,
                                  [](const Record& r) { return MaskIn(r).has_value(); }),
            1);
  const auto mask = MaskIn(collector.records[2]);
  ASSERT_TRUE(mask.has_value());
  EXPECT_EQ(mask->pid, pid);
  EXPECT_EQ(mask->time, 0u);
  EXPECT_EQ(mask->insn_mask, 0x007f000000000000u);
  EXPECT_EQ(mask->data_mask, 0x007e000000000000u);
  EXPECT_EQ(mask->source, perfdata::PacMask::kAskedOfCpu);

  // What the session makes of these records.
  perfdata::Features features;
  features.arch = "aarch64";
  Counters counters;
  session::Session session(features, kNativeEndian, counters);
  for (const Record& record : collector.records) session.Apply(record);
  const session::PointerMask expected = {0x007f000000000000, 0x007e000000000000,
                                         session::MaskSource::kSideBand};
  EXPECT_EQ(session.MaskOf(session.ProcessOf(pid), nullptr), expected);
  EXPECT_EQ(counters.Get("session.mask_of_unknown_process"), 0u);
}

constexpr uint64_t kMask52 = 0x0070000000000000;

os::PointerAuthentication Said(uint64_t keys) {
  return {.enabled_keys = keys, .insn_mask = kMask52, .data_mask = kMask52};
}

// A process with one more thread, which `keys` says the keys of: what is synthesised of its masks.
std::vector<perfdata::PacMask> MasksOfTwoThreads(const ProcessFacts& wanted, Unread& unread) {
  std::atomic<bool> started = false, end = false;
  std::thread thread([&] {
    started = true;
    while (!end) std::this_thread::yield();
  });
  while (!started) std::this_thread::yield();
  Collector collector;
  BuildIdReader build_ids;
  const auto result =
      SynthesizeProcess(static_cast<uint32_t>(getpid()), wanted, build_ids, collector.Emit());
  end = true;
  thread.join();
  EXPECT_TRUE(result.has_value());
  unread = result.value_or(Unread());
  std::vector<perfdata::PacMask> masks;
  for (const Record& record : collector.records) {
    if (const auto mask = MaskIn(record)) masks.push_back(*mask);
  }
  return masks;
}

TEST(SynthesizeProcess, WhatTheKernelSaysOfItsMasksIsBest) {
  const auto pid = static_cast<uint32_t>(getpid());
  ProcessFacts wanted = kSigned;
  wanted.ptr_auth = [](uint32_t, uint32_t) -> Result<os::PointerAuthentication> {
    return Said(0x1f);
  };
  Unread unread;
  auto masks = MasksOfTwoThreads(wanted, unread);
  ASSERT_EQ(masks.size(), 1u) << "the other thread has the same";
  EXPECT_EQ(masks[0].tid, pid);
  EXPECT_EQ(masks[0].enabled_keys, 0x1fu);
  EXPECT_EQ(masks[0].insn_mask, kMask52);
  EXPECT_EQ(masks[0].data_mask, kMask52);
  EXPECT_EQ(masks[0].time, 0u);
  EXPECT_EQ(masks[0].source, perfdata::PacMask::kProcFile);

  wanted.ptr_auth = [pid](uint32_t, uint32_t tid) -> Result<os::PointerAuthentication> {
    return Said(tid == pid ? 0x1f : 0);
  };
  masks = MasksOfTwoThreads(wanted, unread);
  ASSERT_EQ(masks.size(), 2u) << "keys are a thread's";
  EXPECT_NE(masks[1].tid, pid);
  EXPECT_EQ(masks[1].pid, pid);
  EXPECT_EQ(masks[1].enabled_keys, 0u);
  EXPECT_FALSE(unread.masks);
}

TEST(SynthesizeProcess, WhereTheKernelsMasksMayNotBeReadTheCpusAreTaken) {
  ProcessFacts wanted = kSigned;
  wanted.ptr_auth = [](uint32_t, uint32_t) -> Result<os::PointerAuthentication> {
    return Fail(ErrorKind::kPermission, "another user's");
  };
  Unread unread;
  const auto masks = MasksOfTwoThreads(wanted, unread);
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].source, perfdata::PacMask::kAskedOfCpu);
  EXPECT_TRUE(unread.masks);
  EXPECT_FALSE(unread.mappings);
}

TEST(MaskOfProgram, NoBitsForProgramsOf32BitsAndNothingForNone) {
  const std::string path = ::testing::TempDir() + "stackreel-program";
  const auto mask_of = [&](ByteView program) {
    std::ofstream(path) << AsText(program);
    const auto record = MaskOfProgram(7, path, *kSigned.pointer_authentication);
    std::filesystem::remove(path);
    return record ? MaskIn(*record) : std::nullopt;
  };
  const auto arm = mask_of(elf::ElfWriter(elf::Class::k32, Endian::kLittle, EM_ARM).Take());
  ASSERT_TRUE(arm.has_value());
  EXPECT_EQ(arm->pid, 7u);
  EXPECT_EQ(arm->insn_mask, 0u);
  EXPECT_EQ(arm->data_mask, 0u);
  EXPECT_EQ(arm->source, perfdata::PacMask::kProgramOf32Bits);
  const auto arm64 = mask_of(elf::ElfWriter(elf::Class::k64, Endian::kLittle, EM_AARCH64).Take());
  ASSERT_TRUE(arm64.has_value());
  EXPECT_EQ(arm64->insn_mask, 0x007f000000000000u);
  EXPECT_EQ(mask_of(AsBytes("#!/bin/sh\n")), std::nullopt);
  EXPECT_FALSE(MaskOfProgram(7, path, *kSigned.pointer_authentication)) << "there is no file";
}

TEST(SynthesizeProcess, AProcessThatIsGoneGivesNothing) {
  Collector collector;
  BuildIdReader build_ids;
  EXPECT_TRUE(SynthesizeProcess(1u << 30, kSigned, build_ids, collector.Emit()).has_value());
  EXPECT_TRUE(collector.records.empty());
}

TEST(SynthesizeProcess, SaysWhoseMappingsMayNotBeRead) {
  constexpr uid_t kNobody = 65534;
  const auto us = static_cast<uint32_t>(getpid());
  EXPECT_FALSE(
      SynthesizeProcess(us, {}, *std::make_unique<BuildIdReader>(), Collector().Emit())->mappings);
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const pid_t child = fork();
  if (child == 0) {
    if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(3);
    Collector collector;
    BuildIdReader build_ids;
    const auto unread = SynthesizeProcess(us, {}, build_ids, collector.Emit());
    _exit(!unread ? 2 : unread->mappings ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(MappingName, AnonymousMemoryHasAName) {
  EXPECT_EQ(MappingName(""), "//anon");
  EXPECT_EQ(MappingName("[heap]"), "[heap]");
  EXPECT_EQ(MappingName("/a (deleted)"), "/a (deleted)");
}

std::vector<uint8_t> Note(uint32_t type, std::string_view name, const std::vector<uint8_t>& desc) {
  ByteWriter out;
  out.U32(static_cast<uint32_t>(name.size() + 1));
  out.U32(static_cast<uint32_t>(desc.size()));
  out.U32(type);
  out.Text(name);
  out.U8(0);
  out.AlignTo(4);
  out.Bytes(desc);
  out.AlignTo(4);
  return out.Take();
}

TEST(BuildIdOfNotes, FindsTheOneNoteAmongOthers) {
  std::vector<uint8_t> notes = Note(1, "Linux", {1, 2, 3});
  const auto id = Note(3, "GNU", {0xaa, 0xbb, 0xcc, 0xdd});
  notes.insert(notes.end(), id.begin(), id.end());
  EXPECT_EQ(BuildIdOfNotes(notes)->ToHex(), "aabbccdd");
  for (size_t size = 0; size < notes.size(); ++size) {
    EXPECT_FALSE(BuildIdOfNotes(ByteView(notes).first(size)).has_value()) << size;
  }
}

// A machine with a kernel and modules.
class KernelImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "stackreel-kernel-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    folders_ = {.proc = folder_ + "/proc", .sys = folder_ + "/sys", .modules = folder_ + "/lib"};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Put(const std::string& name, std::string_view text) const {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string folder_;
  KernelFolders folders_;
};

TEST_F(KernelImageTest, TextModulesAndBuildIds) {
  Put("proc/kallsyms",
      "0000000000000000 A fixed_percpu_data\n"
      "ffffffff81000000 T _stext\nffffffff81000000 T _text\n"
      "ffffffff82000000 T _etext\nffffffffc0001000 t helper\t[foo_bar]\n");
  Put("proc/modules",
      "foo_bar 16384 1 - Live 0xffffffffc0001000 (OE)\n"
      "other 8192 0 - Live 0xffffffffc0000000\n"
      "hidden 8192 0 - Live 0x0000000000000000\nbroken\n");
  const auto note = Note(3, "GNU", {1, 2});
  Put("sys/kernel/notes", AsText(note));
  Put("sys/module/foo_bar/notes/.note.gnu.build-id", AsText(note));
  const auto kernel = ReadKernelImage(folders_);
  ASSERT_TRUE(kernel.has_value());
  EXPECT_EQ(kernel->text_start, 0xffffffff81000000u);
  EXPECT_EQ(kernel->text_end, 0xffffffff82000000u);
  EXPECT_EQ(kernel->reference_symbol, "_text");
  EXPECT_EQ(kernel->build_id->ToHex(), "0102");
  ASSERT_EQ(kernel->modules.size(), 2u);
  EXPECT_EQ(kernel->modules[0].name, "other");
  EXPECT_EQ(kernel->modules[1].path, "[foo_bar]");
  EXPECT_EQ(kernel->modules[1].build_id->ToHex(), "0102");

  Collector collector;
  ASSERT_TRUE(SynthesizeKernel(*kernel, collector.Emit()).has_value());
  ASSERT_EQ(collector.records.size(), 3u);
  const auto& mmap = std::get<perfdata::Mmap>(collector.records[0].body);
  EXPECT_EQ(mmap.pid, static_cast<uint32_t>(-1));
  EXPECT_EQ(mmap.filename, "[kernel.kallsyms]_text");
  EXPECT_EQ(mmap.pgoff, 0xffffffff81000000u);
  EXPECT_EQ(mmap.len, 0x1000000u);
  EXPECT_NE(collector.records[2].misc & perfdata::kMiscMmapBuildId, 0);
}

TEST_F(KernelImageTest, HiddenAddressesGiveNoKernel) {
  Put("proc/kallsyms", "0000000000000000 T _stext\n0000000000000000 T _text\n");
  const auto kernel = ReadKernelImage(folders_);
  ASSERT_TRUE(kernel.has_value());
  Collector collector;
  ASSERT_TRUE(SynthesizeKernel(*kernel, collector.Emit()).has_value());
  EXPECT_TRUE(collector.records.empty());
}

TEST_F(KernelImageTest, BpfProgramsHaveTheNamesOfKallsyms) {
  Put("proc/kallsyms",
      "ffffffff81000000 T _text\n"
      "ffffffffc0002000 t bpf_trampoline_77\t[bpf]\n"
      "ffffffffc0001000 t bpf_prog_0102030405060708_main\t[bpf]\n"
      "ffffffffc0002100 t bpf_dispatcher_xdp\t[bpf]\n");
  const auto kernel = ReadKernelImage(folders_);
  ASSERT_TRUE(kernel.has_value());
  os::BpfProgram program;
  program.id = 9;
  program.tag = {1, 2, 3, 4, 5, 6, 7, 8};
  program.name = "cut_off_name";
  program.code = {{0xffffffffc0001000, 100}, {0xffffffffc0003000, 20}};
  Collector collector;
  ASSERT_TRUE(SynthesizeBpf(*kernel, {program}, collector.Emit()).has_value());
  ASSERT_EQ(collector.records.size(), 5u);
  const auto symbol = [&](size_t i) {
    return std::get<perfdata::Ksymbol>(collector.records[i].body);
  };
  EXPECT_EQ(symbol(0), (perfdata::Ksymbol{.addr = 0xffffffffc0001000,
                                          .len = 100,
                                          .ksym_type = 1,
                                          .flags = 0,
                                          .name = "bpf_prog_0102030405060708_main"}));
  EXPECT_EQ(symbol(1).name, "bpf_prog_0102030405060708_cut_off_name");
  const auto& event = std::get<perfdata::BpfEvent>(collector.records[2].body);
  EXPECT_EQ(event.type, 1);
  EXPECT_EQ(event.id, 9u);
  EXPECT_EQ(event.tag, program.tag);
  EXPECT_EQ(symbol(3).name, "bpf_trampoline_77");
  EXPECT_EQ(symbol(3).len, 0x100u);
  EXPECT_EQ(symbol(4).addr, 0xffffffffc0002100u);
  EXPECT_EQ(symbol(4).len, 0xf00u);
}

TEST(SynthesizeNamespaces, AreThoseOfProc) {
  Collector collector;
  const auto pid = static_cast<uint32_t>(getpid());
  ASSERT_TRUE(SynthesizeNamespaces(pid, collector.Emit()).has_value());
  ASSERT_GE(collector.records.size(), 1u);
  const auto& namespaces = std::get<perfdata::Namespaces>(collector.records[0].body);
  EXPECT_EQ(namespaces.pid, pid);
  ASSERT_EQ(namespaces.links.size(), 7u);
  const std::string mnt = std::filesystem::read_symlink("/proc/self/ns/mnt");
  EXPECT_EQ(mnt, "mnt:[" + std::to_string(namespaces.links[5].ino) + "]");
}

TEST(SynthesizeCgroups, AreTheFoldersOfTheHierarchyThatEventsKnow) {
  std::string root = ::testing::TempDir() + "stackreel-cgroup-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  std::filesystem::create_directories(root + "/a.slice/b");
  std::ofstream(root + "/a.slice/cgroup.procs") << "1\n";
  const auto paths = [](const std::string& mounts) {
    Collector collector;
    EXPECT_TRUE(SynthesizeCgroups(mounts, collector.Emit()).has_value());
    std::vector<std::string> found;
    for (const Record& record : collector.records) {
      const auto& cgroup = std::get<perfdata::Cgroup>(record.body);
      EXPECT_NE(cgroup.id, 0u);
      found.push_back(cgroup.path);
    }
    return found;
  };
  const std::vector<std::string> all = {"/", "/a.slice", "/a.slice/b"};
  EXPECT_EQ(paths("cgroup2 " + root + " cgroup2 rw 0 0\n"), all);
  EXPECT_EQ(paths("x /nowhere cgroup2 rw 0 0\ny " + root + " cgroup rw,perf_event 0 0\n"), all);
  EXPECT_EQ(paths("y " + root + " cgroup rw,cpuset 0 0\n"), std::vector<std::string>());
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace stackreel::record
