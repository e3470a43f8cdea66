#include "tracer/foreign_code.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_io.h"
#include "elf/elf_writer.h"
#include "tracer/module_code.h"

namespace stackreel::tracer {
namespace {

using elf::ElfWriter;

constexpr uint64_t kText = 0x1000;
constexpr size_t kTextSize = 0x1000;

// A library of these functions of 16 bytes and other symbols, with a section of that name too.
std::unique_ptr<ModuleCode> Module(const std::vector<ElfWriter::NewSymbol>& symbols,
                                   const std::string& section = ".comment") {
  ElfWriter writer;
  const uint32_t text = writer.Add({.name = ".text",
                                    .flags = SHF_ALLOC | SHF_EXECINSTR,
                                    .addr = kText,
                                    .bytes = std::vector<uint8_t>(kTextSize, 0x90),
                                    .align = 16});
  writer.AddSegment(PT_LOAD, PF_R | PF_X, text);
  writer.Add({.name = section, .bytes = {1}});
  writer.AddSymbols(SHT_SYMTAB, symbols);
  InlineExecutor executor;
  auto module =
      ModuleCode::Read(std::make_shared<MemoryImage>(writer.Take(), "library"), nullptr, executor);
  EXPECT_TRUE(module.has_value());
  return std::move(*module);
}
ElfWriter::NewSymbol Function(const char* name, uint64_t at) {
  return {.name = name, .value = kText + at, .size = 16};
}
ElfWriter::NewSymbol Label(const char* name, uint64_t at) {
  return {.name = name, .value = kText + at, .type = STT_NOTYPE};
}

bool IsForeign(const ModuleCode& module, uint64_t at) {
  return module.WhyForeign(Svma(kText + at)) != nullptr;
}

TEST(ForeignCode, GoIsBetweenTwoSymbols) {
  const auto module = Module(
      {Function("_cgo_topofstack", 0), Label("runtime.text", 0x100), Function("main.leaf", 0x200),
       Label("runtime.etext", 0x400), Function("twice", 0x400)},
      ".gopclntab");
  EXPECT_FALSE(IsForeign(*module, 0));
  EXPECT_TRUE(IsForeign(*module, 0x100));
  EXPECT_TRUE(IsForeign(*module, 0x200));
  EXPECT_FALSE(IsForeign(*module, 0x400));
  EXPECT_EQ(std::string_view(module->WhyForeign(Svma(kText + 0x200))).substr(0, 2), "Go");
}

TEST(ForeignCode, GoWithoutSymbolsIsAllOfTheModule) {
  for (const char* const section : {".gopclntab", ".data.rel.ro.gopclntab", ".go.buildinfo"}) {
    const auto module = Module({Function("exported", 0x10)}, section);
    EXPECT_TRUE(IsForeign(*module, 0x10)) << section;
  }
}

TEST(ForeignCode, NamesAloneAreNotGo) {
  const auto module =
      Module({Label("runtime.text", 0), Label("runtime.etext", 0x800), Function("f", 0x10)});
  EXPECT_FALSE(IsForeign(*module, 0x10));
}

TEST(ForeignCode, OcamlUnitsAreBetweenTheirSymbols) {
  for (const std::string separator : {"__", ".", "$"}) {
    const std::string unit = "camlHello" + separator;
    const std::string system = "caml_system" + separator;
    const auto module =
        Module({Label((unit + "code_begin").c_str(), 0x100), Function("camlHello__f_81", 0x100),
                Label((unit + "code_end").c_str(), 0x200), Function("caml_alloc", 0x300),
                Label((system + "code_begin").c_str(), 0x400), Function("caml_c_call", 0x410),
                Label((system + "code_end").c_str(), 0x500), Function("caml_main", 0x500)});
    EXPECT_TRUE(IsForeign(*module, 0x100)) << separator;
    EXPECT_FALSE(IsForeign(*module, 0x300)) << separator;
    EXPECT_TRUE(IsForeign(*module, 0x410)) << separator;
    EXPECT_FALSE(IsForeign(*module, 0x500)) << separator;
  }
}

// Rather too much than what would end the program.
TEST(ForeignCode, AnOcamlUnitWithoutEndGoesOn) {
  const auto module = Module({Label("camlA__code_begin", 0x100), Label("camlB__code_begin", 0x200),
                              Label("camlB__code_end", 0x300), Function("f", 0x800)});
  EXPECT_FALSE(IsForeign(*module, 0));
  EXPECT_TRUE(IsForeign(*module, 0x800));
}

TEST(ForeignCode, HaskellFunctionsAreKnownByTheirNames) {
  const auto module = Module({Function("base_GHCziBase_zpzp_info", 0x100),
                              Function("stg_ap_v64_fast", 0x200),
                              Function("StgReturn", 0x300),
                              Function("allocate", 0x400),
                              {.name = "stg_upd_frame_info", .type = STT_NOTYPE, .section = 0}});
  EXPECT_TRUE(IsForeign(*module, 0x100));
  EXPECT_TRUE(IsForeign(*module, 0x200));
  EXPECT_TRUE(IsForeign(*module, 0x300));
  EXPECT_FALSE(IsForeign(*module, 0x400));
}

TEST(ForeignCode, HotspotIsAllOfTheModule) {
  const auto module = Module({Function("JVM_Sleep", 0x100),
                              Function("_ZN13ObjectMonitor", 0x200),
                              {.name = "gHotSpotVMStructs", .value = 0x9000, .type = STT_OBJECT}});
  EXPECT_TRUE(IsForeign(*module, 0x100));
  EXPECT_TRUE(IsForeign(*module, 0x200));
}

TEST(ForeignCode, OtherLanguagesUseSuchNamesToo) {
  const auto module = Module({Function("print_info", 0x100), Function("camlp_code", 0x200)});
  EXPECT_FALSE(IsForeign(*module, 0x100));
  EXPECT_FALSE(IsForeign(*module, 0x200));
  const auto linked = Module({Function("print_info", 0x100)}, ".debug-ghc-link-info");
  EXPECT_TRUE(IsForeign(*linked, 0x100));
}

}  // namespace
}  // namespace stackreel::tracer
