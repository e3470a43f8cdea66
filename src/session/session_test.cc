#include "session/session.h"

#include <gtest/gtest.h>

#include <string>

#include "perfdata/record.h"
#include "session/fake_recording.h"

namespace stackreel::session {
namespace {

using perfdata::Record;
using perfdata::RecordType;

TEST_F(SessionTest, LaterMappingsSplitEarlierOnes) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x9000, 0, "/a"));
  session_.Apply(MakeMmap2(1, 0x3000, 0x1000, 0x7000, "/b"));
  EXPECT_EQ(Where(1, 0x2fff), "/a");
  EXPECT_EQ(Where(1, 0x3000), "/b");
  EXPECT_EQ(Where(1, 0x4000), "/a");
  EXPECT_EQ(Where(1, 0xa000), "");
  EXPECT_EQ(session_.Find(*session_.ProcessOf(1).maps, Avma(0x4010)).offset, FileOffset(0x3010));
  EXPECT_EQ(session_.Find(*session_.ProcessOf(1).maps, Avma(0x3010)).offset, FileOffset(0x7010));
}

TEST_F(SessionTest, HoldersSeeTheMapsOfTheirTime) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/old"));
  const AddressSpacePtr then = session_.ProcessOf(1).maps;
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/new"));
  EXPECT_EQ(Where(*then, 0x1000), "/old");
  EXPECT_EQ(Where(1, 0x1000), "/new");
  EXPECT_NE(then->version(), session_.ProcessOf(1).maps->version());
}

TEST_F(SessionTest, VersionsChangeEvenWhenNobodyHoldsTheMaps) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/a"));
  const uint64_t before = session_.ProcessOf(1).maps->version();
  session_.Apply(MakeMmap2(1, 0x2000, 0x1000, 0, "/b"));
  EXPECT_NE(session_.ProcessOf(1).maps->version(), before);
}

TEST_F(SessionTest, ForkCopiesAndThreadsShare) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/a"));
  session_.Apply(MakeTask(RecordType::kFork, 2, 1, 2, 1));
  session_.Apply(MakeTask(RecordType::kFork, 1, 1, 3, 1));  // a thread
  EXPECT_EQ(Where(2, 0x1000), "/a");
  EXPECT_EQ(session_.ProcessOf(2).ppid, 1U);
  session_.Apply(MakeMmap2(1, 0x5000, 0x1000, 0, "/parent"));
  session_.Apply(MakeMmap2(2, 0x6000, 0x1000, 0, "/child"));
  EXPECT_EQ(Where(2, 0x5000), "");
  EXPECT_EQ(Where(1, 0x6000), "");
  EXPECT_EQ(Where(session_.ThreadOf(1, 3).pid, 0x5000), "/parent");
}

TEST_F(SessionTest, SynthesizedForkDoesNotCopy) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/a"));
  session_.Apply(MakeTask(RecordType::kFork, 2, 1, 2, 1, perfdata::kMiscForkExec));
  EXPECT_EQ(Where(2, 0x1000), "");
}

TEST_F(SessionTest, ExecResetsOnceTheNewProgramIsMapped) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/old"));
  session_.Apply(MakeComm(1, 1, "new", /*exec=*/true));
  EXPECT_EQ(Where(1, 0x1000), "/old") << "the call's registers are still there";
  session_.Apply(MakeMmap2(1, 0x8000, 0x1000, 0, "/new"));
  EXPECT_EQ(Where(1, 0x1000), "");
  EXPECT_EQ(Where(1, 0x8000), "/new");
}

TEST_F(SessionTest, CommWithoutExecKeepsMaps) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/a"));
  session_.Apply(MakeComm(1, 1, "renamed"));
  session_.Apply(MakeMmap2(1, 0x8000, 0x1000, 0, "/b"));
  EXPECT_EQ(Where(1, 0x1000), "/a");
}

TEST_F(SessionTest, Comms) {
  EXPECT_EQ(CommOf(7, 7), ":7");
  EXPECT_EQ(CommOf(0, 0), "swapper");
  EXPECT_EQ(CommOf(UINT32_MAX, UINT32_MAX), ":-1");
  session_.Apply(MakeComm(1, 1, "main"));
  session_.Apply(MakeTask(RecordType::kFork, 1, 1, 2, 1));
  session_.Apply(MakeTask(RecordType::kFork, 3, 1, 3, 2));
  EXPECT_EQ(CommOf(1, 2), "main");
  EXPECT_EQ(CommOf(3, 3), "main");
  session_.Apply(MakeComm(1, 2, "worker"));
  EXPECT_EQ(CommOf(1, 1), "main");
  EXPECT_EQ(CommOf(1, 2), "worker");
  session_.Apply(MakeTask(RecordType::kFork, 8, 7, 8, 7));
  EXPECT_EQ(CommOf(8, 8), ":8") << "the parent's is not known";
}

TEST_F(SessionTest, CommOutlivesExitAndEndsWithReuse) {
  session_.Apply(MakeComm(1, 1, "gone"));
  session_.Apply(MakeTask(RecordType::kExit, 1, 1, 1, 1));
  EXPECT_EQ(CommOf(1, 1), "gone") << "samples may come after EXIT";
  session_.Apply(MakeComm(9, 9, "nine"));
  session_.Apply(MakeTask(RecordType::kFork, 1, 9, 1, 9));
  EXPECT_EQ(CommOf(1, 1), "nine");
}

TEST_F(SessionTest, ForgetsProcessesThatAreLongGone) {
  for (uint32_t pid = 10; pid < 10'000; ++pid) {
    session_.Apply(MakeMmap2(pid, 0x1000, 0x1000, 0, "/a"));
    session_.Apply(MakeComm(pid, pid, "x"));
    session_.Apply(MakeTask(RecordType::kExit, pid, 1, pid, 1));
  }
  EXPECT_LT(session_.processes().size(), 5'000U);
  EXPECT_EQ(session_.FindThread(10), nullptr);
  EXPECT_EQ(CommOf(9'999, 9'999), "x");
}

TEST_F(SessionTest, AProcessStaysWhileAThreadOfItLives) {
  session_.Apply(MakeMmap2(5, 0x1000, 0x1000, 0, "/a"));
  session_.Apply(MakeComm(5, 5, "x"));
  session_.Apply(MakeTask(RecordType::kFork, 5, 5, 6, 5));
  session_.Apply(MakeTask(RecordType::kExit, 5, 5, 5, 5));
  for (uint32_t pid = 10; pid < 10'000; ++pid) {
    session_.Apply(MakeComm(pid, pid, "x"));
    session_.Apply(MakeTask(RecordType::kExit, pid, 1, pid, 1));
  }
  EXPECT_EQ(Where(5, 0x1000), "/a");
}

TEST_F(SessionTest, SvmaComesFromTheSegmentThatIsMapped) {
  session_.SetSegmentLoader([](const Module& module) -> std::vector<LoadSegment> {
    if (module.path() != "/lld") return {};
    return {{.offset = 0, .file_size = 0x600, .vaddr = 0, .mem_size = 0x600, .executable = false},
            {.offset = 0x600,
             .file_size = 0x800,
             .vaddr = 0x1600,
             .mem_size = 0x800,
             .executable = true}};
  });
  session_.Apply(MakeMmap2(1, 0x555500001000, 0x1000, 0, "/lld"));
  const Location location = session_.Find(*session_.ProcessOf(1).maps, Avma(0x555500001680));
  EXPECT_EQ(location.svma, Svma(0x1680));
  EXPECT_EQ(location.offset, FileOffset(0x680));
  session_.Apply(MakeMmap2(1, 0x7f0000000000, 0x1000, 0x2000, "/no-file"));
  EXPECT_EQ(session_.Find(*session_.ProcessOf(1).maps, Avma(0x7f0000000010)).svma, Svma(0x2010));
}

TEST_F(SessionTest, SegmentsAreAskedForOnce) {
  int asked = 0;
  session_.SetSegmentLoader([&](const Module&) -> std::vector<LoadSegment> {
    ++asked;
    return {};
  });
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/a"));
  session_.Apply(MakeMmap2(2, 0x1000, 0x1000, 0, "/a"));
  (void)session_.Find(*session_.ProcessOf(1).maps, Avma(0x1000));
  (void)session_.Find(*session_.ProcessOf(2).maps, Avma(0x1000));
  EXPECT_EQ(asked, 1);
}

TEST_F(SessionTest, TextMovedToHugePagesKeepsItsFile) {
  constexpr uint64_t kMb = uint64_t{1} << 20;
  session_.Apply(MakeMmap2(1, 10 * kMb, 20 * kMb, 0, "/big"));
  session_.Apply(MakeMmap2(1, 12 * kMb, 4 * kMb, 0, "//anon"));
  EXPECT_EQ(Where(1, 13 * kMb), "/big");
  EXPECT_EQ(counters_.Get("session.huge_page_text"), 1U);
  session_.Apply(MakeMmap2(1, 20 * kMb + 4096, 4096, 0, "//anon"));
  EXPECT_EQ(Where(1, 20 * kMb + 4096), "/tmp/perf-1.map") << "not of huge pages";
  session_.Apply(MakeMmap2(1, 28 * kMb, 4 * kMb, 0, "//anon"));
  EXPECT_EQ(Where(1, 29 * kMb), "/tmp/perf-1.map") << "not all over the file";
}

TEST_F(SessionTest, JitAndDataMemory) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "//anon"));
  session_.Apply(MakeMmap2(1, 0x2000, 0x1000, 0, "//anon", kProtRw));
  session_.Apply(MakeMmap2(1, 0x3000, 0x1000, 0, "[vdso]"));
  const auto kind = [&](uint64_t avma) {
    return session_.modules()[session_.Find(*session_.ProcessOf(1).maps, Avma(avma)).module]
        .key.kind;
  };
  EXPECT_EQ(kind(0x1000), ModuleKind::kJit);
  EXPECT_EQ(kind(0x2000), ModuleKind::kAnonymous);
  EXPECT_EQ(kind(0x3000), ModuleKind::kVdso);
  EXPECT_EQ(session_.Find(*session_.ProcessOf(1).maps, Avma(0x1010)).svma, Svma(0x1010))
      << "perf maps have actual addresses";
  EXPECT_EQ(session_.Find(*session_.ProcessOf(1).maps, Avma(0x3010)).svma, Svma(0x10));
  EXPECT_EQ(session_.ProcessOf(1).maps->HighestExecutableEnd(), Avma(0x4000));
}

TEST_F(SessionTest, MmapWithoutProtectionIsExecutableUnlessItIsData) {
  session_.Apply(MakeMmap(1, 0x1000, 0x1000, 0, "/a", kUser));
  session_.Apply(MakeMmap(1, 0x2000, 0x1000, 0, "/a", kUser | perfdata::kMiscMmapData));
  EXPECT_TRUE(session_.ProcessOf(1).maps->Find(Avma(0x1000))->value.executable);
  EXPECT_FALSE(session_.ProcessOf(1).maps->Find(Avma(0x2000))->value.executable);
}

TEST_F(SessionTest, DeletedFilesAreModulesOfTheirOwn) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/a"));
  session_.Apply(MakeMmap2(1, 0x2000, 0x1000, 0, "/a (deleted)"));
  const auto module = [&](uint64_t avma) {
    return session_.Find(*session_.ProcessOf(1).maps, Avma(avma)).module;
  };
  EXPECT_NE(module(0x1000), module(0x2000));
  EXPECT_TRUE(session_.modules()[module(0x2000)].deleted);
}

TEST_F(SessionTest, KernelAndModules) {
  constexpr uint32_t kNoPid = UINT32_MAX;
  session_.Apply(MakeMmap(kNoPid, 0xffffffffc0000000, 0x4000, 0, "[nf-tables]", kKernel));
  session_.Apply(MakeMmap(kNoPid, 0xffffffff81000000, 0x60000000, 0xffffffff81000123,
                          "[kernel.kallsyms]_stext", kKernel));
  const AddressSpace& maps = *session_.kernel_maps();
  EXPECT_EQ(Where(maps, 0xffffffff81000010), "[kernel.kallsyms]");
  EXPECT_EQ(Where(maps, 0xffffffffc0000010), "[nf-tables]") << "the kernel's range spans it";
  const Module& kernel = session_.modules()[session_.Find(maps, Avma(0xffffffff81000010)).module];
  EXPECT_EQ(kernel.key.kind, ModuleKind::kKernel);
  EXPECT_EQ(kernel.reference_symbol, "_stext");
  EXPECT_EQ(kernel.reference_address, 0xffffffff81000123U);
  EXPECT_EQ(kernel.kernel_start, Avma(0xffffffff81000000));
  EXPECT_EQ(session_.Find(maps, Avma(0xffffffff81000010)).svma, Svma(0xffffffff81000010));
}

TEST_F(SessionTest, AModuleAsLargeAsTheKernelsHalfIsNone) {
  session_.Apply(MakeMmap(UINT32_MAX, 0xffffffff81000000, 0x1000000, 0xffffffff81000000,
                          "[kernel.kallsyms]_text", kKernel));
  session_.Apply(
      MakeMmap(UINT32_MAX, 0xffff800000000000, 0x7fffffffffff, 0x12ffffffff, "[ext4]", kKernel));
  EXPECT_EQ(Where(*session_.kernel_maps(), 0xffffffff81000010), "[kernel.kallsyms]");
  EXPECT_EQ(Where(*session_.kernel_maps(), 0xffff800000000010), "");
  EXPECT_EQ(counters_.Get("session.bad_kernel_mapping"), 1);
}

TEST_F(SessionTest, AKernelThatEndsBeforeItsSymbolIsNone) {
  session_.Apply(MakeMmap(UINT32_MAX, 0x1ffffff81000000, 0x1000000, 0xffffffff81000000,
                          "[kernel.kallsyms]_text", kKernel));
  EXPECT_EQ(Where(*session_.kernel_maps(), 0x1ffffff81000010), "");
  EXPECT_EQ(counters_.Get("session.bad_kernel_mapping"), 1);
}

TEST_F(SessionTest, AMappingBeyondAllMemoryIsNone) {
  session_.Apply(MakeMmap2(10, 0x1000, 0x1000, 0, "/bin/prog"));
  session_.Apply(MakeMmap2(10, 0x8000, UINT64_MAX, 0, "/lib/libc.so"));
  session_.Apply(MakeMmap2(10, 0xffffffffffff0000, 0x1000, 0, "/lib/libc.so"));
  session_.Apply(MakeMmap2(10, 0xffffffffff600000, 0x1000, 0, "[vsyscall]"));
  const AddressSpace& maps = *session_.ProcessOf(10).maps;
  EXPECT_EQ(Where(maps, 0x1010), "/bin/prog");
  EXPECT_EQ(Where(maps, 0x8010), "");
  EXPECT_EQ(Where(maps, 0xffffffffffff0010), "");
  EXPECT_EQ(Where(maps, 0xffffffffff600010), "[vsyscall]");
  EXPECT_EQ(counters_.Get("session.bad_mapping"), 2);
}

TEST_F(SessionTest, GuestKernelIsApart) {
  session_.Apply(
      MakeMmap(UINT32_MAX, 0xffffffff81000000, 0x1000, 0, "[guest.kernel.kallsyms]_text", 4));
  EXPECT_EQ(Where(*session_.guest_kernel_maps(), 0xffffffff81000010), "[guest.kernel.kallsyms]");
  EXPECT_EQ(Where(*session_.kernel_maps(), 0xffffffff81000010), "");
}

TEST_F(SessionTest, KsymbolsComeAndGo) {
  perfdata::Ksymbol symbol{0xffffffffc0100000, 0x80, 1, 0, "bpf_prog_1_x"};
  session_.Apply(Record{static_cast<uint32_t>(RecordType::kKsymbol), 0, symbol, {}});
  EXPECT_EQ(Where(*session_.kernel_maps(), 0xffffffffc010007f), "bpf_prog_1_x");
  EXPECT_TRUE(session_.modules().back().ksymbol);
  symbol.flags = 1;
  session_.Apply(Record{static_cast<uint32_t>(RecordType::kKsymbol), 0, symbol, {}});
  EXPECT_EQ(Where(*session_.kernel_maps(), 0xffffffffc010007f), "");
}

BuildId Id(uint8_t byte, size_t size = 20) { return BuildId(std::vector<uint8_t>(size, byte)); }

TEST_F(SessionTest, VdsosAreToldApartByBuildIdAndPlace) {
  const BuildId native = Id(0x64);
  const BuildId compat = Id(0x32);
  features_.build_ids = {{.pid = -1, .build_id = native, .filename = "[vdso]"},
                         {.pid = -1, .build_id = compat, .filename = "[vdso32]"}};
  constexpr uint64_t kHigh = 0x7fff'0000'0000;
  session_.Apply(MakeMmap2(1, kHigh, 0x2000, 0, "[vdso]"));
  session_.Apply(MakeMmap2(2, 0xf7f0'0000, 0x2000, 0, "[vdso]"));
  const auto module = [&](uint32_t pid, uint64_t avma) {
    return session_.modules()[session_.Find(*session_.ProcessOf(pid).maps, Avma(avma)).module];
  };
  EXPECT_EQ(module(1, kHigh).key.build_id, native);
  EXPECT_EQ(module(1, kHigh).path(), "[vdso]");
  EXPECT_EQ(module(2, 0xf7f0'0000).key.build_id, compat);
  EXPECT_EQ(module(2, 0xf7f0'0000).path(), "[vdso32]");
  // What a record says itself comes first.
  Record with_id = MakeMmap2(3, kHigh, 0x2000, 0, "[vdso]");
  const BuildId other = Id(0x77);
  std::get<perfdata::Mmap2>(with_id.body).build_id = other;
  with_id.misc |= perfdata::kMiscMmapBuildId;
  session_.Apply(with_id);
  EXPECT_EQ(module(3, kHigh).key.build_id, other);
}

TEST_F(SessionTest, BuildIdsByPathAndByMapping) {
  features_.build_ids.push_back({-1, Id(1), "/a"});
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/a"));
  Record own = MakeMmap2(1, 0x2000, 0x1000, 0, "/a");
  std::get<perfdata::Mmap2>(own.body).build_id = Id(2);
  session_.Apply(own);
  session_.Apply(MakeMmap2(1, 0x3000, 0x1000, 0, "/late"));
  session_.Apply(Record{static_cast<uint32_t>(RecordType::kHeaderBuildId),
                        0,
                        perfdata::HeaderBuildId{-1, Id(3), "/late"},
                        {}});
  features_.build_ids.push_back({-1, Id(4), "/later"});  // as in pipe mode
  session_.Apply(MakeMmap2(1, 0x4000, 0x1000, 0, "/later"));
  session_.Apply(MakeMmap2(2, 0x3000, 0x1000, 0, "/late"));
  const auto id_at = [&](uint32_t pid, uint64_t avma) {
    return session_.modules()[session_.Find(*session_.ProcessOf(pid).maps, Avma(avma)).module]
        .key.build_id;
  };
  EXPECT_EQ(id_at(1, 0x1000), Id(1));
  EXPECT_EQ(id_at(1, 0x2000), Id(2)) << "what the mapping says is nearer";
  EXPECT_EQ(id_at(1, 0x3000), Id(3));
  EXPECT_EQ(id_at(1, 0x4000), Id(4));
  EXPECT_EQ(session_.Find(*session_.ProcessOf(1).maps, Avma(0x3000)).module,
            session_.Find(*session_.ProcessOf(2).maps, Avma(0x3000)).module);
}

TEST_F(SessionTest, Machines) {
  EXPECT_EQ(session_.machine(), 0);
  for (const auto& [arch, machine] : std::vector<std::pair<std::string, int>>{{"x86_64", 62},
                                                                              {"i686", 3},
                                                                              {"aarch64", 183},
                                                                              {"armv7l", 40},
                                                                              {"riscv64", 243},
                                                                              {"ia64", 0}}) {
    features_.arch = arch;
    EXPECT_EQ(session_.machine(), machine) << arch;
  }
  features_.raw[33] = {183, 0, 0, 0};
  EXPECT_EQ(session_.machine(), 183);
}

TEST_F(SessionTest, MappingsAtTheEndOfAddresses) {
  session_.Apply(MakeMmap2(1, 0xfffffffffffe0000, 0x10000, 0, "/a"));
  EXPECT_EQ(Where(1, 0xfffffffffffeffff), "/a");
  EXPECT_EQ(Where(1, 0xffffffffffff0000), "");
  session_.Apply(MakeMmap2(1, 0x1000, 0, 0, "/empty"));
  EXPECT_EQ(Where(1, 0x1000), "");
}

TEST_F(SessionTest, BadRecordsAreCounted) {
  perfdata::TimedRecord record;
  record.raw.type = static_cast<uint32_t>(RecordType::kMmap2);
  const std::vector<uint8_t> bytes = {10, 0, 0, 0, 0, 0, 8, 0};
  record.raw.bytes = bytes;
  session_.Apply(record, {});
  EXPECT_EQ(counters_.Get("session.bad_record"), 1U);
}

Record MakeNamespaces(uint32_t pid, uint64_t mount) {
  perfdata::Namespaces namespaces;
  namespaces.pid = namespaces.tid = pid;
  namespaces.links.resize(7, {3, 100});
  namespaces.links[5].ino = mount;
  return {static_cast<uint32_t>(RecordType::kNamespaces), 0, namespaces, {}};
}

TEST_F(SessionTest, APathIsAnotherFileInAnotherMountNamespace) {
  session_.Apply(MakeNamespaces(1, 500));
  session_.Apply(MakeNamespaces(2, 600));
  session_.Apply(MakeTask(RecordType::kFork, 3, 2, 3, 2));
  for (const uint32_t pid : {1u, 2u, 3u, 4u}) {
    session_.Apply(MakeMmap2(pid, 0x1000, 0x1000, 0, "/bin/a"));
  }
  const auto module_of = [&](uint32_t pid) {
    return session_.Find(*session_.ProcessOf(pid).maps, Avma(0x1000)).module;
  };
  EXPECT_NE(module_of(1), module_of(2));
  EXPECT_EQ(module_of(2), module_of(3)) << "a child is in its parent's";
  EXPECT_NE(module_of(1), module_of(4));
  EXPECT_EQ(session_.modules()[module_of(1)].mount_namespace, 500U);
  EXPECT_EQ(session_.modules()[module_of(3)].mount_namespace, 600U);
  EXPECT_EQ(session_.modules()[module_of(4)].mount_namespace, 0U);
  session_.Apply(Record{
      static_cast<uint32_t>(RecordType::kNamespaces), 0, perfdata::Namespaces{1, 1, {{3, 1}}}, {}});
  EXPECT_EQ(session_.ProcessOf(1).mount_namespace, 500U)
      << "of an older kernel: no mount namespace";
}

TEST_F(SessionTest, GuestProcessesAreNotThoseOfTheHost) {
  Record guest = MakeMmap2(1, 0x1000, 0x1000, 0, "/guest");
  guest.misc = static_cast<uint16_t>(perfdata::CpuMode::kGuestUser);
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/host"));
  session_.Apply(guest);
  EXPECT_EQ(Where(1, 0x1000), "/host");
  EXPECT_EQ(Where(*session_.GuestProcessOf(1).maps, 0x1000), "/guest");
}

TEST_F(SessionTest, ControlGroupsByTheirId) {
  session_.Apply(Record{
      static_cast<uint32_t>(RecordType::kCgroup), 0, perfdata::Cgroup{42, "/system.slice"}, {}});
  EXPECT_EQ(session_.CgroupPath(42), "/system.slice");
  EXPECT_EQ(session_.CgroupPath(43), "");
}

TEST_F(SessionTest, AnUnregisteredSymbolLeavesTheKernelThatWasThere) {
  const uint64_t text = 0xffffffff81000000;
  session_.Apply(MakeMmap(UINT32_MAX, text, 0x100000, text, "[kernel.kallsyms]_text", kKernel));
  perfdata::Ksymbol symbol;
  symbol.addr = text + 0x1000;
  symbol.len = 0x100;
  symbol.ksym_type = 2;
  symbol.name = "ftrace_trampoline";
  const Record load{static_cast<uint32_t>(RecordType::kKsymbol), 0, symbol, {}};
  session_.Apply(load);
  const AddressSpace* maps = session_.kernel_maps().get();
  EXPECT_EQ(Where(*maps, text + 0x1010), "ftrace_trampoline");
  EXPECT_EQ(session_.Find(*maps, Avma(text + 0x1010)).svma, Svma(0x10));
  symbol.flags = 1;
  session_.Apply(Record{static_cast<uint32_t>(RecordType::kKsymbol), 0, symbol, {}});
  maps = session_.kernel_maps().get();
  EXPECT_EQ(Where(*maps, text + 0x1010), "[kernel.kallsyms]");
  EXPECT_EQ(session_.Find(*maps, Avma(text + 0x1010)).svma, Svma(text + 0x1010));
}

TEST_F(SessionTest, PatchedKernelTextStaysWhatItIs) {
  const uint64_t text = 0xffffffff81000000;
  session_.Apply(MakeMmap(UINT32_MAX, text, 0x100000, text, "[kernel.kallsyms]_text", kKernel));
  const uint64_t version = session_.kernel_maps()->version();
  perfdata::TextPoke poke;
  poke.addr = text + 0x10;
  session_.Apply(Record{static_cast<uint32_t>(RecordType::kTextPoke), 0, poke, {}});
  session_.Apply(Record{static_cast<uint32_t>(RecordType::kBpfEvent), 0, perfdata::BpfEvent{}, {}});
  EXPECT_EQ(session_.kernel_maps()->version(), version);
}

TEST_F(SessionTest, AJitDumpIsItsProcesss) {
  session_.Apply(MakeMmap2(1, 0x1000, 0x1000, 0, "/tmp/jit-1.dump"));
  const ModuleId dump = session_.ProcessOf(1).jit_dump;
  ASSERT_NE(dump, kNoModule);
  EXPECT_EQ(session_.modules()[dump].key.kind, ModuleKind::kJitDump);
  EXPECT_EQ(session_.modules()[dump].key.pid, 1U);
  session_.Apply(MakeTask(RecordType::kFork, 2, 1, 2, 1));
  EXPECT_EQ(session_.ProcessOf(2).jit_dump, dump) << "a child has the code too";
  session_.Apply(MakeComm(2, 2, "x", /*exec=*/true));
  EXPECT_EQ(session_.ProcessOf(2).jit_dump, kNoModule);
  session_.Apply(MakeMmap2(3, 0x1000, 0x1000, 0, "/tmp/jit-3.dump", kProtRw));
  session_.Apply(MakeMmap2(3, 0x2000, 0x1000, 0, "/tmp/jit-x.dump"));
  session_.Apply(MakeMmap2(3, 0x3000, 0x1000, 0, "/tmp/jit-.dump"));
  EXPECT_EQ(session_.ProcessOf(3).jit_dump, kNoModule) << "somebody who reads one";
}

}  // namespace
}  // namespace stackreel::session
