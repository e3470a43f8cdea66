#include "tracer/module_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/memory_io.h"
#include "os/file.h"

// A function of this very program, whose names are known.
extern "C" {
__attribute__((noinline, noclone)) int TracerModuleCodeTestFunction(int x) {
  asm volatile("");
  return x * 3;
}
int TracerModuleCodeTestAlias(int x)
    __attribute__((nothrow, alias("TracerModuleCodeTestFunction")));
}

// As a compiler with -pg calls the C library's function, by way of its GOT slot; and a call of
// another.
__asm__(
    ".text\n.globl module_code_profiled\n.type module_code_profiled, @function\n"
    "module_code_profiled:\n push %rbp\n mov %rsp, %rbp\n call *__fentry__@GOTPCREL(%rip)\n"
    " call getpid@PLT\n pop %rbp\n ret\n.size module_code_profiled, . - module_code_profiled\n");

// Two of which only call-frame information tells: a function, and a part of one that is jumped to.
__asm__(
    ".text\n.globl module_code_whole\nmodule_code_whole:\n"
    ".cfi_startproc\n sub $40, %rsp\n.cfi_def_cfa_offset 48\n add $40, %rsp\n"
    ".cfi_def_cfa_offset 8\n ret\n.cfi_endproc\n"
    ".globl module_code_part\nmodule_code_part:\n"
    ".cfi_startproc\n.cfi_def_cfa_offset 48\n mov (%rsp), %rax\n add $40, %rsp\n"
    ".cfi_def_cfa_offset 8\n ret\n.cfi_endproc\n");
extern "C" const char module_code_whole, module_code_part;

namespace stackreel::tracer {
namespace {

std::unique_ptr<ModuleCode> ReadThisProgram() {
  auto file = os::MapFile("/proc/self/exe");
  EXPECT_TRUE(file.has_value());
  InlineExecutor executor;
  auto module = ModuleCode::Read(std::move(*file), nullptr, executor);
  EXPECT_TRUE(module.has_value()) << module.error().ToString();
  return std::move(*module);
}

TEST(ModuleCode, KnowsAFunctionByAllItsNames) {
  ASSERT_EQ(TracerModuleCodeTestAlias(2), 6);
  const auto module = ReadThisProgram();
  const auto& functions = module->functions();
  const auto found = std::ranges::find_if(functions, [](const ModuleFunction& function) {
    return function.name == "TracerModuleCodeTestFunction" ||
           std::ranges::find(function.others, "TracerModuleCodeTestFunction") !=
               function.others.end();
  });
  ASSERT_NE(found, functions.end());
  EXPECT_TRUE(found->name == "TracerModuleCodeTestAlias" ||
              std::ranges::find(found->others, "TracerModuleCodeTestAlias") != found->others.end());
  EXPECT_FALSE(found->code.empty());
  const auto site = module->ChooseSite(*found, {});
  ASSERT_TRUE(site.has_value());
  EXPECT_GE(site->address, found->start);
}

TEST(ModuleCode, KnowsWhichCallsAreThoseOfAProfiler) {
  const auto module = ReadThisProgram();
  std::set<std::string_view> called;
  for (const ModuleFunction& function : module->functions()) {
    const auto site = module->ChooseSite(function, {});
    if (!site || site->kind != x86::SiteKind::kCall) continue;
    called.insert(function.name);
    if (function.name == "module_code_profiled") {
      EXPECT_EQ(site->address - function.start, 4U);
      EXPECT_EQ(site->length, 6U);
    }
  }
  // Those that other tests of this program are about, too.
  EXPECT_THAT(called,
              ::testing::UnorderedElementsAre("module_code_profiled", "plan_framed", "plan_late"));
}

// A compiler puts the unlikely parts of functions elsewhere; of a stripped program they have no
// name that says so. What stands at the top of the stack there is no return address.
TEST(ModuleCode, PartsOfFunctionsThatAreJumpedToAreNoFunctions) {
  const auto module = ReadThisProgram();
  const auto& functions = module->functions();
  const auto known = std::ranges::find_if(functions, [](const ModuleFunction& function) {
    return function.name.starts_with("TracerModuleCodeTest");
  });
  ASSERT_NE(known, functions.end());
  const auto svma = [&](const void* at) {
    return known->start + (reinterpret_cast<uint64_t>(at) -
                           reinterpret_cast<uint64_t>(&TracerModuleCodeTestFunction));
  };
  const auto has = [&](Svma start) {
    return std::ranges::find(functions, start, &ModuleFunction::start) != functions.end();
  };
  EXPECT_TRUE(has(svma(&module_code_whole)));
  EXPECT_FALSE(has(svma(&module_code_part)));
}

TEST(ModuleCode, FunctionsAscendAndDoNotOverlap) {
  const auto module = ReadThisProgram();
  const auto& functions = module->functions();
  ASSERT_GT(functions.size(), 100U);
  for (size_t i = 1; i < functions.size(); ++i) {
    ASSERT_LE(functions[i - 1].start + functions[i - 1].code.size(), functions[i].start);
  }
}

TEST(ModuleCode, RefusesWhatIsNoCodeOfThisCpu) {
  InlineExecutor executor;
  // \x7f ELF, 64 bits, little-endian; ET_EXEC of EM_AARCH64, version 1; all else 0.
  std::vector<uint8_t> header(64);
  const uint8_t start[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  std::ranges::copy(start, header.begin());
  header[16] = 2;
  header[18] = 183;
  header[20] = 1;
  header[52] = 64;
  const auto module =
      ModuleCode::Read(std::make_shared<MemoryImage>(header, "other"), nullptr, executor);
  ASSERT_FALSE(module.has_value());
  EXPECT_EQ(module.error().kind, ErrorKind::kUnsupported);
  EXPECT_FALSE(ModuleCode::Read(std::make_shared<MemoryImage>(std::vector<uint8_t>{}, "none"),
                                nullptr, executor)
                   .has_value());
}

}  // namespace
}  // namespace stackreel::tracer
