#include "symfiles/symfiles.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "elf/elf_writer.h"
#include "os/file.h"
#include "os/proc.h"
#include "symfiles/debuginfod.h"
#include "symfiles/elf_search.h"
#include "symfiles/kernel_files.h"
#include "symfiles/mount_namespace.h"
#include "symfiles/perf_map.h"

namespace stackreel::symfiles {
namespace {

namespace fs = std::filesystem;
using elf::ElfWriter;
using session::Module;
using session::ModuleKind;
using symbolize::ModuleFiles;
using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

const BuildId kId = *BuildId::FromHex("ab12cd34ab12cd34ab12cd34ab12cd34ab12cd34");
const BuildId kOtherId = *BuildId::FromHex("cd34ab12cd34ab12cd34ab12cd34ab12cd34ab12");

std::string TextOf(const FileImagePtr& image) {
  return image == nullptr ? "" : std::string(AsText(image->bytes()));
}

// A folder that goes away with the test; nothing outside it is looked at.
class SymfilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "symfiles_test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    options_.buildid_dir = root_ / "cache";
    options_.debug_dirs = {root_ / "debug"};
    options_.debuginfod = false;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Write(const std::string& path, const Bytes& bytes) const {
    const fs::path full = root_ / path;
    fs::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
    return full;
  }
  static Bytes Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] ModuleFiles FilesOf(const std::string& path, const BuildId& id,
                                    ModuleKind kind = ModuleKind::kFile) const {
    Module module;
    module.key = {.kind = kind, .path = path, .build_id = id, .pid = 0};
    return MakeFileProvider(options_)->FilesOf(module);
  }

  fs::path root_;
  SearchOptions options_;
};

Bytes Binary(const BuildId& id) {
  ElfWriter writer;
  writer.Add({.name = ".text", .addr = 0x1000, .bytes = Bytes(16)});
  if (!id.empty()) writer.AddBuildId(id);
  return writer.Take();
}

TEST_F(SymfilesTest, TakesThePathItselfIfTheBuildIdAgrees) {
  const std::string path = Write("bin/prog", Binary(kId));
  EXPECT_EQ(FilesOf(path, kId).main->name(), path);
  EXPECT_EQ(FilesOf(path, BuildId()).main->name(), path) << "nothing to compare with";
  const ModuleFiles other = FilesOf(path, kOtherId);
  EXPECT_EQ(other.main, nullptr);
  EXPECT_EQ(other.why, path + ": " + path +
                           ": build-id differs: recorded cd34ab12cd34ab12…, on disk "
                           "ab12cd34ab12cd34…");
}

// While recording, a file that was deleted or replaced is still there for who has it mapped. Only
// root may follow the links to libraries.
TEST_F(SymfilesTest, AMappedFileThatIsGone) {
  const std::string path = Write("lib/old.so", Binary(kId));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* const mapping = mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  ASSERT_NE(mapping, MAP_FAILED);
  fs::remove(path);
  Write("lib/old.so", Binary(kOtherId));
  options_.proc_root = true;
  Module module;
  module.key = {.kind = ModuleKind::kFile, .path = path, .build_id = kId, .pid = 0};
  module.first_pid = static_cast<uint32_t>(getpid());
  const bool may_follow = geteuid() == 0;
  EXPECT_EQ(MakeFileProvider(options_)->FilesOf(module).main != nullptr, may_follow) << "replaced";
  module.key.build_id = BuildId();
  module.deleted = true;
  const ModuleFiles deleted = MakeFileProvider(options_)->FilesOf(module);
  ASSERT_NE(deleted.main, nullptr);
  const auto image = elf::Image::Parse(deleted.main->bytes());
  EXPECT_EQ(image->ReadBuildId() == kId, may_follow) << "not what has its name now";
  munmap(mapping, 1);
}

TEST_F(SymfilesTest, CacheHasPerfsLayout) {
  const Bytes binary = Binary(kId);
  const std::string cache = options_.buildid_dir;
  ASSERT_TRUE(AddToCache(cache, "/usr/bin/prog", kId, binary, "elf"));
  ASSERT_TRUE(AddToCache(cache, "/usr/bin/prog", kId, binary, "elf")) << "again";
  EXPECT_EQ(Read(cache + "/usr/bin/prog/" + kId.ToHex() + "/elf"), binary);
  EXPECT_EQ(fs::read_symlink(cache + "/.build-id/ab/" + kId.ToHex().substr(2)),
            "../../usr/bin/prog/" + kId.ToHex());
  EXPECT_EQ(Read(CachePath(cache, kId)), binary);
  EXPECT_EQ(FilesOf("/usr/bin/prog", kId).main->name(), CachePath(cache, kId));
  EXPECT_FALSE(AddToCache(cache, "/usr/../../etc", kId, binary, "elf"));
  EXPECT_FALSE(AddToCache(cache, "/usr/bin/prog", BuildId(), binary, "elf"));
}

// A stripped binary whose debuglink names `link`, with a checksum.
Bytes Stripped(const BuildId& id, const std::string& link, uint32_t crc) {
  ElfWriter writer;
  writer.Add({.name = ".text", .addr = 0x1000, .bytes = Bytes(16)});
  if (!id.empty()) writer.AddBuildId(id);
  writer.AddDebugLink(link, crc);
  return writer.Take();
}

// What `name` is the debug file of: has DWARF, and a symbol.
Bytes DebugFile(const BuildId& id) {
  ElfWriter writer;
  writer.Add({.name = ".text", .addr = 0x1000, .bytes = Bytes(16)});
  writer.Add({.name = ".debug_info", .bytes = Bytes(4)});
  if (!id.empty()) writer.AddBuildId(id);
  return writer.Take();
}

std::string NameOf(const FileImagePtr& file) {
  return file == nullptr ? "" : std::string(file->name());
}

TEST_F(SymfilesTest, LooksBelowSymfsFirst) {
  const std::string here = Write("usr/bin/prog", Binary(kId));
  const std::string below = Write("sysroot" + here, Binary(kOtherId));
  const std::string flat = Write("copied/prog", Binary(kOtherId));
  options_.symfs = {root_ / "sysroot/"};
  EXPECT_EQ(NameOf(FilesOf(here, kOtherId).main), below);
  EXPECT_EQ(NameOf(FilesOf(here, kId).main), here) << "the right one, wherever it is";
  options_.symfs = {root_ / "copied"};
  EXPECT_EQ(NameOf(FilesOf("/opt/x/prog", kOtherId).main), flat);
}

TEST_F(SymfilesTest, DebugFileByBuildId) {
  const std::string binary = Write("bin/prog", Binary(kId));
  const std::string path = "debug/.build-id/ab/" + kId.ToHex().substr(2) + ".debug";
  const std::string debug = Write(path, DebugFile(kId));
  EXPECT_EQ(NameOf(FilesOf(binary, kId).debug), debug);
  EXPECT_EQ(NameOf(FilesOf(binary, BuildId()).debug), debug) << "the binary's own id serves";
  // Without the binary the debug file still has names and lines.
  EXPECT_EQ(NameOf(FilesOf("/gone/prog", kId).debug), debug);
  Write(path, DebugFile(kOtherId));
  EXPECT_EQ(FilesOf(binary, kId).debug, nullptr);
  // What has DWARF itself needs no other file.
  Write(path, DebugFile(kId));
  EXPECT_EQ(FilesOf(Write("bin/full", DebugFile(kId)), kId).debug, nullptr);
}

TEST_F(SymfilesTest, DebugLinkInItsThreePlaces) {
  const Bytes debug = DebugFile(BuildId());
  const std::string binary =
      Write("bin/prog", Stripped(BuildId(), "prog.debug", elf::DebugLinkCrc(debug)));
  EXPECT_EQ(FilesOf(binary, BuildId()).debug, nullptr);
  const std::string global = Write("debug" + (root_ / "bin/prog.debug").string(), debug);
  EXPECT_EQ(NameOf(FilesOf(binary, BuildId()).debug), global);
  const std::string hidden = Write("bin/.debug/prog.debug", debug);
  EXPECT_EQ(NameOf(FilesOf(binary, BuildId()).debug), hidden);
  const std::string beside = Write("bin/prog.debug", debug);
  EXPECT_EQ(NameOf(FilesOf(binary, BuildId()).debug), beside);
}

TEST_F(SymfilesTest, DebugLinkOfAnotherBuildIsNotTaken) {
  const std::string binary = Write("bin/prog", Stripped(BuildId(), "prog.debug", 0x1234));
  const std::string debug = Write("bin/prog.debug", DebugFile(BuildId()));
  const FoundFile main = {*os::MapFile(binary), binary};
  Reasons reasons;
  ElfSearch search(options_);
  EXPECT_FALSE(search.FindDebug(&main, BuildId(), 0, reasons));
  EXPECT_THAT(reasons.ToString(), HasSubstr(debug + ": checksum "));
  EXPECT_THAT(reasons.ToString(), HasSubstr(" is not 00001234 as "));
  // Where both have build-ids these decide, whatever the checksum.
  Write("bin/prog", Stripped(kId, "prog.debug", 0x1234));
  Write("bin/prog.debug", DebugFile(kId));
  EXPECT_EQ(NameOf(FilesOf(binary, kId).debug), debug);
  Write("bin/prog.debug", DebugFile(kOtherId));
  EXPECT_EQ(FilesOf(binary, kId).debug, nullptr);
}

TEST_F(SymfilesTest, DebugLinkToItselfIsNotFollowed) {
  const std::string binary = Write("bin/prog", Stripped(BuildId(), "prog", 0));
  EXPECT_EQ(FilesOf(binary, BuildId()).debug, nullptr);
}

TEST_F(SymfilesTest, DwzFiles) {
  const std::string binary = Write("bin/prog", DebugFile(kId));
  const ModuleFiles files = FilesOf(binary, kId);
  EXPECT_EQ(files.alt_file("../dwz/common", kOtherId.bytes()), nullptr);
  const std::string shared = Write("debug/.dwz/common", DebugFile(kOtherId));
  EXPECT_EQ(NameOf(files.alt_file("../dwz/common", kOtherId.bytes())), shared);
  const std::string by_id =
      Write("debug/.build-id/cd/" + kOtherId.ToHex().substr(2) + ".debug", DebugFile(kOtherId));
  EXPECT_EQ(NameOf(files.alt_file("../dwz/common", kOtherId.bytes())), by_id);
  Write("dwz/common", DebugFile(kOtherId));
  EXPECT_EQ(NameOf(files.alt_file("../dwz/common", kOtherId.bytes())),
            (root_ / "bin/../dwz/common").string());
  EXPECT_EQ(files.alt_file("../dwz/common", kId.bytes()), nullptr) << "another build's";
}

TEST_F(SymfilesTest, SplitDwarfFiles) {
  const std::string binary = Write("bin/prog", DebugFile(kId));
  const ModuleFiles files = FilesOf(binary, kId);
  EXPECT_EQ(files.dwo_file("", ""), nullptr);
  EXPECT_EQ(files.dwo_file("obj/a.dwo", "/nowhere"), nullptr);
  const std::string package = Write("bin/prog.dwp", DebugFile(kId));
  EXPECT_EQ(NameOf(files.dwo_file("", "")), package);
  const std::string beside = Write("bin/a.dwo", DebugFile(kId));
  EXPECT_EQ(NameOf(files.dwo_file("obj/a.dwo", "/nowhere")), beside);
  const std::string built = Write("build/obj/a.dwo", DebugFile(kId));
  EXPECT_EQ(NameOf(files.dwo_file("obj/a.dwo", (root_ / "build").string())), built);
}

TEST_F(SymfilesTest, WhatIsNoFileOfTheRecordingSaysSo) {
  EXPECT_EQ(FilesOf("/gone/prog", BuildId()).why, "/gone/prog: not found");
  const std::string text = Write("bin/script", {'#', '!', '/', 'b', 'i', 'n', '/', 's', 'h', '\n'});
  EXPECT_EQ(FilesOf(text, kId).why, text + ": " + text + ": offset 0x0: not an ELF file");
  EXPECT_THAT(FilesOf("/dev/zero", BuildId()).why, HasSubstr("/dev/zero"));
  EXPECT_EQ(FilesOf("[vsyscall]", BuildId(), ModuleKind::kVsyscall).why, "[vsyscall]: has no file");
}

TEST_F(SymfilesTest, KernelByKallsymsOfTheCacheOnly) {
  const std::string_view text = "ffffffff81000000 T _text\nffffffffc0000000 t f\t[mod]\n";
  ASSERT_TRUE(
      AddToCache(options_.buildid_dir, "[kernel.kallsyms]", kId, AsBytes(text), "kallsyms"));
  EXPECT_EQ(TextOf(FilesOf("[kernel.kallsyms]", kId, ModuleKind::kKernel).kallsyms), text);
  const ModuleFiles other = FilesOf("[kernel.kallsyms]", kOtherId, ModuleKind::kKernel);
  EXPECT_EQ(other.kallsyms, nullptr);
  EXPECT_THAT(other.why, HasSubstr("running kernel: build-id differs: recorded cd34ab12cd34ab12…"));
  options_.kernel_build_id = kId;
  EXPECT_EQ(TextOf(FilesOf("[mod]", BuildId(), ModuleKind::kKernelModule).kallsyms), text);
  const ModuleFiles missing = FilesOf("[other]", BuildId(), ModuleKind::kKernelModule);
  EXPECT_EQ(missing.kallsyms, nullptr);
  EXPECT_THAT(missing.why, HasSubstr("kallsyms has no symbols of this module"));
  options_.kernel_build_id = BuildId();
  options_.os_release = "1.2.3-other";
  EXPECT_THAT(FilesOf("[kernel.kallsyms]", BuildId(), ModuleKind::kKernel).why,
              HasSubstr("recorded on kernel 1.2.3-other, running is "));
  options_.kallsyms = Write("kallsyms", {'0', ' ', 'T', ' ', 'x', '\n'});
  EXPECT_THAT(FilesOf("[kernel.kallsyms]", BuildId(), ModuleKind::kKernel).why,
              HasSubstr("addresses are hidden"));
}

TEST_F(SymfilesTest, KernelModulesAreUnpacked) {
  const Bytes module = Binary(kId);
  Bytes packed(lzma_stream_buffer_bound(module.size()));
  size_t size = 0;
  ASSERT_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, nullptr, module.data(), module.size(),
                                    packed.data(), &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  const std::string path = Write("lib/modules/6.1/kernel/fs/ext4.ko.xz", packed);
  const ModuleFiles files = FilesOf(path, kId, ModuleKind::kKernelModule);
  ASSERT_NE(files.main, nullptr);
  EXPECT_TRUE(std::ranges::equal(files.main->bytes(), module));
  EXPECT_THAT(FilesOf(path, kOtherId, ModuleKind::kKernelModule).why,
              HasSubstr("ext4.ko.xz: build-id differs"));
}

TEST_F(SymfilesTest, VdsoOfThisMachineOrOfTheCache) {
  const Bytes own = os::ReadOwnVdso();
  const auto image = elf::Image::Parse(own);
  if (!image) GTEST_SKIP() << "this process has no vDSO";
  const BuildId own_id = image->ReadBuildId().value();
  EXPECT_NE(FilesOf("[vdso]", own_id, ModuleKind::kVdso).main, nullptr);
  const ModuleFiles other = FilesOf("[vdso]", kId, ModuleKind::kVdso);
  EXPECT_EQ(other.main, nullptr);
  EXPECT_THAT(other.why, HasSubstr("this machine's vDSO: build-id differs"));
  // That of 32-bit tasks is another than ours.
  const ModuleFiles unknown = FilesOf("[vdso32]", BuildId(), ModuleKind::kVdso);
  EXPECT_EQ(unknown.main, nullptr);
  EXPECT_THAT(unknown.why, HasSubstr("[vdso32]: its build-id is not in the recording"));
  ASSERT_TRUE(AddToCache(options_.buildid_dir, "[vdso]", kId, Binary(kId), "vdso"));
  EXPECT_EQ(NameOf(FilesOf("[vdso]", kId, ModuleKind::kVdso).main),
            CachePath(options_.buildid_dir, kId, "vdso"));
}

TEST_F(SymfilesTest, PerfMapsOfThisUserOnly) {
  constexpr uint32_t kNoProcess = 4'199'001;  // beyond the highest process number
  const std::string path = "/tmp/perf-4199001.map";
  std::ofstream(path) << "1000 10 jitted\n";
  Module module;
  module.key = {.kind = ModuleKind::kJit, .path = "//anon", .build_id = {}, .pid = kNoProcess};
  const auto provider = MakeFileProvider(options_);
  const ModuleFiles files = provider->FilesOf(module);
  EXPECT_EQ(TextOf(files.perf_map), "1000 10 jitted\n");
  if (chown(path.c_str(), 12345, 12345) == 0 && geteuid() == 0) {
    EXPECT_THAT(provider->FilesOf(module).why, HasSubstr("belongs to user 12345"));
  }
  fs::remove(path);
  EXPECT_EQ(provider->FilesOf(module).why, "//anon: no perf map: " + path + " is not there");
}

TEST(PerfMapTest, PidInTheInnermostNamespace) {
  EXPECT_EQ(InnermostPid("Name:\tx\nNSpid:\t1234\t56\t7\nNSpgid:\t1\n"), 7);
  EXPECT_EQ(InnermostPid("NSpid:\t1234\n"), 1234);
  EXPECT_EQ(InnermostPid("Name:\tx\n"), 0);
}

TEST_F(SymfilesTest, DebuginfodByUrl) {
  setenv("DEBUGINFOD_URLS", ("file://" + (root_ / "server").string()).c_str(), 1);
  setenv("DEBUGINFOD_CACHE_PATH", (root_ / "client").c_str(), 1);
  const auto client = Debuginfod::Open();
  if (!client) {
    unsetenv("DEBUGINFOD_URLS");
    GTEST_SKIP() << client.error().message;
  }
  const Bytes debug = DebugFile(kId);
  Write("server/buildid/" + kId.ToHex() + "/debuginfo", debug);
  options_.debuginfod = true;
  const ModuleFiles files = FilesOf("/gone/prog", kId);
  ASSERT_NE(files.debug, nullptr);
  EXPECT_TRUE(std::ranges::equal(files.debug->bytes(), debug));
  EXPECT_EQ(files.main, nullptr);
  options_.debuginfod = false;
  EXPECT_EQ(FilesOf("/gone/prog", kId).debug, nullptr) << "not asked for";
  unsetenv("DEBUGINFOD_URLS");
  unsetenv("DEBUGINFOD_CACHE_PATH");
}

TEST(PerfconfigTest, BuildIdDir) {
  EXPECT_EQ(BuildIdDirOfConfig("[buildid]\n\tdir = /var/cache/x # here\n"), "/var/cache/x");
  EXPECT_EQ(BuildIdDirOfConfig("[buildid]\ndir=\"/a b\"\n[other]\ndir=/c\n"), "/a b");
  EXPECT_EQ(BuildIdDirOfConfig("# dir = /x\n[tui]\ndir = /y\n"), std::nullopt);
  EXPECT_EQ(BuildIdDirOfConfig("[buildid"), std::nullopt);
}

TEST_F(SymfilesTest, KallsymsThatTellNothing) {
  EXPECT_TRUE(HidesAddresses("0000000000000000 T a\n0000000000000000 t b\n"));
  EXPECT_FALSE(HidesAddresses("0000000000000000 A a\nffffffff81000000 t b\n"));
}

TEST(MountNamespace, IsOfAProcessThatIsThere) {
  const uint64_t own = MountNamespaceOf(0);
  ASSERT_NE(own, 0U);
  const auto pid = static_cast<uint32_t>(getpid());
  EXPECT_EQ(MountNamespaceOf(pid), own);
  EXPECT_EQ(ProcessInMountNamespace(own, pid), pid);
  EXPECT_NE(ProcessInMountNamespace(own, UINT32_MAX), 0U) << "another shows the same files";
  EXPECT_EQ(ProcessInMountNamespace(0, pid), 0U);
  EXPECT_EQ(ProcessInMountNamespace(UINT64_MAX, pid), 0U);
}

TEST(MountNamespace, FilesOfOneThatIsGoneAreNotTakenFromHere) {
  SearchOptions options;
  options.debuginfod = false;
  const auto provider = MakeFileProvider(options);
  session::Module module;
  module.key.path = "/proc/self/exe";
  EXPECT_NE(provider->FilesOf(module).main, nullptr);
  module.mount_namespace = UINT64_MAX;
  const symbolize::ModuleFiles files = provider->FilesOf(module);
  EXPECT_EQ(files.main, nullptr);
  EXPECT_EQ(files.why, "/proc/self/exe: was in a mount namespace that is gone");
  module.mount_namespace = MountNamespaceOf(0);
  EXPECT_NE(provider->FilesOf(module).main, nullptr);
}

TEST(JitDumpFiles, AreOnlyBelievedIfTheyAreOurs) {
  const auto provider = MakeFileProvider({});
  session::Module module;
  module.key.kind = session::ModuleKind::kJitDump;
  module.key.path = testing::TempDir() + "jit-77.dump";
  EXPECT_EQ(provider->FilesOf(module).why, module.key.path + ": not found");
  ASSERT_TRUE(std::ofstream(module.key.path) << "JiTD");
  EXPECT_NE(provider->FilesOf(module).main, nullptr);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(module.key.path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(provider->FilesOf(module).main, nullptr);
    EXPECT_THAT(provider->FilesOf(module).why, testing::HasSubstr("belongs to user 12345"));
  }
  std::filesystem::remove(module.key.path);
}

TEST_F(SymfilesTest, AVmlinuxOfAnotherKernelIsToldOf) {
  options_.vmlinux = Write("vmlinux", Binary(kOtherId));
  std::string said;
  options_.notice = [&said](const std::string& text) { said += text; };
  EXPECT_EQ(FilesOf("[kernel.kallsyms]", kId, ModuleKind::kKernel).main, nullptr);
  EXPECT_THAT(said, HasSubstr("--vmlinux is not used: "));
  EXPECT_THAT(said, HasSubstr("build-id differs"));
  said.clear();
  EXPECT_NE(FilesOf("[kernel.kallsyms]", kOtherId, ModuleKind::kKernel).main, nullptr);
  EXPECT_EQ(said, "");
}

TEST_F(SymfilesTest, WhatIsNamedMustBeWhatItShould) {
  const auto text = [](std::string_view t) { return Bytes(t.begin(), t.end()); };
  const auto why = [](const SearchOptions& options) {
    const Status status = CheckSearchOptions(options);
    return status ? std::string("good") : status.error().message;
  };
  fs::create_directories(root_ / "sys/debug");
  SearchOptions options;
  options.debug_dirs = {};
  EXPECT_EQ(why(options), "good");
  options.symfs = {root_ / "sys"};
  options.debug_dirs = {"debug"};  // below symfs
  EXPECT_EQ(why(options), "good");
  options.symfs = {root_ / "gone"};
  EXPECT_THAT(why(options), HasSubstr("--symfs: cannot look in"));
  options.symfs = {};
  EXPECT_THAT(why(options), HasSubstr("--debug-dir: cannot look in"));
  options.debug_dirs = {};
  options.kallsyms = Write("good", text("ffffffff81000000 T _stext\n"));
  EXPECT_EQ(why(options), "good");
  options.kallsyms = Write("hidden", text("0000000000000000 T _stext\n"));
  EXPECT_THAT(why(options), HasSubstr("are 0"));
  options.kallsyms = Write("words", text("some words\nof text\n"));
  EXPECT_THAT(why(options), HasSubstr("no symbols in"));
  options.kallsyms = root_;
  EXPECT_THAT(why(options), HasSubstr("--kallsyms: cannot map"));
  options.kallsyms = "/dev/null";  // a way to say: none
  EXPECT_EQ(why(options), "good");
  options.kallsyms = "";
  options.vmlinux = root_ / "words";
  EXPECT_THAT(why(options), HasSubstr("--vmlinux: "));
  options.vmlinux = root_ / "gone";
  EXPECT_THAT(why(options), HasSubstr("No such file"));
}

}  // namespace
}  // namespace stackreel::symfiles
