#include "symbolize/symbolizer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_io.h"
#include "dwarf/constants.h"
#include "dwarf/dwarf_writer.h"

namespace stackreel::symbolize {
namespace {

using session::Module;
using session::ModuleKind;

// Gives each path what the test put there, and counts how often it was asked.
class FakeFiles : public ModuleFileProvider {
 public:
  ModuleFiles FilesOf(const Module& module) override {
    ++asked[module.path()];
    return files[module.path()];
  }
  std::map<std::string, ModuleFiles> files;
  std::map<std::string, int> asked;
};

Module MakeModule(ModuleKind kind, std::string path) {
  Module module;
  module.key.kind = kind;
  module.key.path = std::move(path);
  return module;
}

ModuleFiles PerfMap(std::string text) {
  ModuleFiles files;
  files.perf_map = std::make_shared<TextImage>(std::move(text));
  return files;
}

TEST(SymbolizerTest, FindsAndDemanglesOnce) {
  FakeFiles provider;
  provider.files["jit"] = PerfMap("1000 10 _ZN3foo3barEi\n2000 20 plain\n");
  Counters counters;
  Symbolizer symbolizer(provider, {}, counters);
  const Module jit = MakeModule(ModuleKind::kJit, "jit");

  auto frames = symbolizer.Find(3, jit, Svma(0x1004));
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(symbolizer.Text(frames[0].function), "foo::bar");
  EXPECT_EQ(symbolizer.Text(frames[0].mangled), "_ZN3foo3barEi");
  EXPECT_EQ(frames[0].offset, 4U);
  EXPECT_FALSE(frames[0].inlined);
  EXPECT_EQ(symbolizer.Text(symbolizer.Find(3, jit, Svma(0x2000))[0].function), "plain");
  // The very same frames, not equal ones.
  EXPECT_EQ(symbolizer.Find(3, jit, Svma(0x1004)).data(), frames.data());
  EXPECT_EQ(provider.asked["jit"], 1);
  EXPECT_EQ(symbolizer.WhyUnresolved(3), "");
}

TEST(SymbolizerTest, NamesStayMangledOnRequest) {
  FakeFiles provider;
  provider.files["jit"] = PerfMap("1000 10 _ZN3foo3barEi\n");
  Counters counters;
  Symbolizer symbolizer(provider, {.demangle = false}, counters);
  auto frames = symbolizer.Find(0, MakeModule(ModuleKind::kJit, "jit"), Svma(0x1000));
  EXPECT_EQ(symbolizer.Text(frames[0].function), "_ZN3foo3barEi");
}

TEST(SymbolizerTest, SaysWhyNothingIsResolved) {
  FakeFiles provider;
  provider.files["/bin/gone"].why = "/bin/gone: no such file";
  Counters counters;
  Symbolizer symbolizer(provider, {}, counters);
  auto frames = symbolizer.Find(0, MakeModule(ModuleKind::kFile, "/bin/gone"), Svma(0x1000));
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].function, 0U);
  EXPECT_EQ(symbolizer.WhyUnresolved(0), "/bin/gone: no such file");
  EXPECT_EQ(symbolizer.WhyUnresolved(7), "");
  EXPECT_EQ(counters.Get("symbolize.unresolved_address"), 1U);
}

TEST(SymbolizerTest, KeepsModulesApart) {
  FakeFiles provider;
  provider.files["a"] = PerfMap("1000 10 in_a\n");
  provider.files["b"] = PerfMap("1000 10 in_b\n");
  Counters counters;
  Symbolizer symbolizer(provider, {}, counters);
  const Module a = MakeModule(ModuleKind::kJit, "a");
  const Module b = MakeModule(ModuleKind::kJit, "b");
  EXPECT_EQ(symbolizer.Text(symbolizer.Find(0, a, Svma(0x1000))[0].function), "in_a");
  EXPECT_EQ(symbolizer.Text(symbolizer.Find(1, b, Svma(0x1000))[0].function), "in_b");
}

TEST(SymbolizerTest, FramesStayWhereTheyAreWhileTheCacheGrows) {
  FakeFiles provider;
  provider.files["jit"] = PerfMap("0 100000 big\n");
  Counters counters;
  Symbolizer symbolizer(provider, {}, counters);
  const Module jit = MakeModule(ModuleKind::kJit, "jit");
  const SymbolizedFrame* first = symbolizer.Find(0, jit, Svma(7)).data();
  for (uint64_t svma = 0; svma < 50'000; ++svma) {
    ASSERT_EQ(symbolizer.Find(0, jit, Svma(svma))[0].offset, svma);
  }
  EXPECT_EQ(symbolizer.Find(0, jit, Svma(7)).data(), first);
  EXPECT_EQ(first->offset, 7U);
}

// kallsyms is of this boot; the recording was made when the kernel lay 0x200000 lower.
TEST(SymbolizerTest, MovesKernelAddressesByTheReferenceSymbol) {
  FakeFiles provider;
  provider.files["[kernel.kallsyms]"].kallsyms = std::make_shared<TextImage>(
      "ffffffff81200000 T _text\n"
      "ffffffff81201000 T do_work\n"
      "ffffffff81202000 T do_rest\n");
  Counters counters;
  Symbolizer symbolizer(provider, {}, counters);
  Module kernel = MakeModule(ModuleKind::kKernel, "[kernel.kallsyms]");
  kernel.reference_symbol = "_text";
  kernel.reference_address = 0xffffffff81000000;
  auto frames = symbolizer.Find(0, kernel, Svma(0xffffffff81001010));
  EXPECT_EQ(symbolizer.Text(frames[0].function), "do_work");
  EXPECT_EQ(frames[0].offset, 0x10U);
}

TEST(SymbolizerTest, LooksUpKernelModulesByTheirNameInKallsyms) {
  const auto kallsyms = std::make_shared<TextImage>(
      "ffffffff81000000 T _text\n"
      "ffffffffc0001000 t nf_hook\t[nf_conntrack]\n"
      "ffffffffc0002000 t other\t[other]\n");
  FakeFiles provider;
  const std::string path = "/lib/modules/6.1.0/kernel/net/nf-conntrack.ko.xz";
  provider.files[path].kallsyms = kallsyms;
  provider.files["[nf_conntrack]"].kallsyms = kallsyms;
  Counters counters;
  Symbolizer symbolizer(provider, {}, counters);
  auto by_path =
      symbolizer.Find(0, MakeModule(ModuleKind::kKernelModule, path), Svma(0xffffffffc0001004));
  EXPECT_EQ(symbolizer.Text(by_path[0].function), "nf_hook");
  auto by_name = symbolizer.Find(1, MakeModule(ModuleKind::kKernelModule, "[nf_conntrack]"),
                                 Svma(0xffffffffc0001004));
  EXPECT_EQ(symbolizer.Text(by_name[0].function), "nf_hook");
}

// A file with f [0x1100, 0x1200), called "f_symbol" by its symbol table if `symbols`, and
// "inner(int)" inlined into it at line 12 [0x1110, 0x1120).
FileImagePtr FileWithInlinedCall(bool symbols) {
  using namespace dwarf;  // NOLINT(google-build-using-namespace)
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData2, 0x100}});
  units.Die(kTagSubprogram, true,
            {{kAtName, kFormString, 0, "f"},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData2, 0x100}});
  units.Die(kTagInlinedSubroutine, false,
            {{kAtLinkageName, kFormString, 0, "_Z5inneri"},
             {kAtLowPc, kFormAddr, 0x1110},
             {kAtHighPc, kFormData1, 0x10},
             {kAtCallLine, kFormData1, 12}});
  units.EndChildren();
  units.EndChildren();
  units.EndUnit();
  DebugFileWriter file;
  file.Add(units);
  if (symbols) file.AddSymbols({{.name = "f_symbol", .value = 0x1100, .size = 0x100}});
  return file.Take();
}

TEST(SymbolizerTest, ShowsInlinedFunctionsOnRequest) {
  FakeFiles provider;
  provider.files["a.out"].main = FileWithInlinedCall(true);
  provider.files["stripped"].main = FileWithInlinedCall(false);
  const Module with_symbols = MakeModule(ModuleKind::kFile, "a.out");
  const Module without = MakeModule(ModuleKind::kFile, "stripped");
  Counters counters;
  Symbolizer symbolizer(provider, {.inlines = true, .lines = true}, counters);
  auto frames = symbolizer.Find(0, with_symbols, Svma(0x1114));
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(symbolizer.Text(frames[0].function), "inner");
  EXPECT_EQ(symbolizer.Text(frames[0].mangled), "_Z5inneri");
  EXPECT_EQ(frames[0].offset, 0x14U);
  EXPECT_TRUE(frames[0].inlined);
  // The function that has code of its own goes by its symbol.
  EXPECT_EQ(symbolizer.Text(frames[1].function), "f_symbol");
  EXPECT_EQ(frames[1].line, 12U);
  EXPECT_EQ(frames[1].offset, 0x14U);
  EXPECT_FALSE(frames[1].inlined);
  EXPECT_EQ(symbolizer.Find(0, with_symbols, Svma(0x1120)).size(), 1U);
  // Without a symbol, by what DWARF calls it.
  frames = symbolizer.Find(1, without, Svma(0x1114));
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(symbolizer.Text(frames[1].function), "f");
  // And none unless asked for.
  Symbolizer plain(provider, {}, counters);
  EXPECT_EQ(plain.Find(0, with_symbols, Svma(0x1114)).size(), 1U);
}

TEST(SymbolizerTest, SeparateDebugFileComesFirst) {
  FakeFiles provider;
  provider.files["a.out"].main = FileWithInlinedCall(false);
  provider.files["a.out"].debug = FileWithInlinedCall(true);
  Counters counters;
  Symbolizer symbolizer(provider, {.inlines = true}, counters);
  auto frames = symbolizer.Find(0, MakeModule(ModuleKind::kFile, "a.out"), Svma(0x1114));
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(symbolizer.Text(frames[1].function), "f_symbol");
}

}  // namespace
}  // namespace stackreel::symbolize
