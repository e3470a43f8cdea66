#include "cli/file_search.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "elf/elf_writer.h"
#include "symfiles/debuginfod.h"

namespace stackreel::cli {
namespace {

// Nobody shall learn from what is asked for what is in a recording that somebody made harmless.
TEST(FileSearch, NothingIsFetchedForAnAnonymisedRecording) {
  const BuildId id = *BuildId::FromHex("ab12cd34ab12cd34ab12cd34ab12cd34ab12cd34");
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "file_search";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "server/buildid" / id.ToHex());
  elf::ElfWriter writer;
  writer.Add({.name = ".debug_info", .bytes = std::vector<uint8_t>(16)});
  writer.AddBuildId(id);
  const std::vector<uint8_t> debug = writer.Take();
  std::ofstream(folder / "server/buildid" / id.ToHex() / "debuginfo", std::ios::binary)
      .write(reinterpret_cast<const char*>(debug.data()), static_cast<long>(debug.size()));
  setenv("DEBUGINFOD_URLS", ("file://" + (folder / "server").string()).c_str(), 1);
  setenv("DEBUGINFOD_CACHE_PATH", (folder / "client").c_str(), 1);
  const auto client = symfiles::Debuginfod::Open();

  CLI::App app;
  FileSearch search;
  search.AddOptions(app, FileUse::kSymbols);
  session::Module module;
  module.key = {.kind = session::ModuleKind::kFile, .path = "/gone/prog", .build_id = id, .pid = 0};
  perfdata::Features features;
  if (client) {
    EXPECT_NE(search.MakeProvider({}, features)->FilesOf(module).debug, nullptr);
  }
  features.anonymized = true;
  EXPECT_EQ(search.MakeProvider({}, features)->FilesOf(module).debug, nullptr);

  unsetenv("DEBUGINFOD_URLS");
  unsetenv("DEBUGINFOD_CACHE_PATH");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stackreel::cli
