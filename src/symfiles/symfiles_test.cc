#include "symfiles/symfiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "elf/elf_writer.h"
#include "symfiles/elf_search.h"
#include "symfiles/kernel_files.h"
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

TEST_F(SymfilesTest, KallsymsOfTheModuleOnly) {
  EXPECT_EQ(LinesOfModule("1 T a\n2 t b\t[m]\n3 t c [n]\n4 t d", ""), "1 T a\n4 t d\n");
  EXPECT_EQ(LinesOfModule("1 T a\n2 t b\t[m]\n3 t c [n]\n", "m"), "2 t b\t[m]\n");
  EXPECT_TRUE(HidesAddresses("0000000000000000 T a\n0000000000000000 t b\n"));
  EXPECT_FALSE(HidesAddresses("0000000000000000 A a\nffffffff81000000 t b\n"));
}

}  // namespace
}  // namespace stackreel::symfiles
