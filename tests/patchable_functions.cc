// Prints how the functions of ELF files can be patched:
//   FILE: functions of at least 6 bytes, how many of them can be patched, by kind; refusals
// With --at-least=PERCENT it fails if a file has fewer.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <string_view>

#include "os/file.h"
#include "os/thread_pool.h"
#include "tracer/module_code.h"
#include "x86/prologue.h"

namespace stackreel {
namespace {

constexpr size_t kSmallest = 6;

struct Counts {
  uint64_t functions = 0;
  uint64_t patchable = 0;
  uint64_t without_trap = 0;
  uint64_t smaller = 0;            // functions of fewer bytes,
  uint64_t smaller_patchable = 0;  // and how many of them can be patched
  std::map<std::string, uint64_t> kinds, passed_over, refusals;
  double read_seconds = 0;  // of CPU time, to read the module and find its targets
  double seconds = 0;       // to choose sites
};

std::string Reason(x86::SiteRefusal refusal, std::optional<x86::RelocateRefusal> relocate) {
  std::string text(NameOf(refusal));
  if (relocate) text += fmt::format(" ({})", NameOf(*relocate));
  return text;
}

void CountFunction(const tracer::ModuleCode& module, const tracer::ModuleFunction& function,
                   bool verbose, Counts& counts) {
  const auto site = module.ChooseSite(function, {});
  if (function.code.size() < kSmallest) {
    ++counts.smaller;
    if (site) ++counts.smaller_patchable;
    return;
  }
  ++counts.functions;
  if (!site) {
    ++counts.refusals[Reason(site.error().reason, site.error().relocate)];
    if (verbose) {
      fmt::print("  {:x} {} {}\n", function.start.value, function.name,
                 Reason(site.error().reason, site.error().relocate));
    }
    return;
  }
  ++counts.patchable;
  ++counts.kinds[std::string(NameOf(site->kind))];
  if (site->kind != x86::SiteKind::kTrap) ++counts.without_trap;
  if (site->not_a_jump) {
    ++counts.passed_over[Reason(*site->not_a_jump, site->relocate)];
    if (verbose) {
      fmt::print("  {:x} {} {} {}\n", function.start.value, function.name, NameOf(site->kind),
                 Reason(*site->not_a_jump, site->relocate));
    }
  }
}

double PercentOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 100 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void Print(const std::string& path, const tracer::ModuleCode& module, const Counts& counts) {
  fmt::print("{}: {} functions, {} patchable ({:.2f} %), {} without a trap ({:.2f} %)\n", path,
             counts.functions, counts.patchable, PercentOf(counts.patchable, counts.functions),
             counts.without_trap, PercentOf(counts.without_trap, counts.functions));
  const auto list = [](const char* what, const std::map<std::string, uint64_t>& numbers) {
    if (numbers.empty()) return;
    fmt::print("  {}:", what);
    for (const auto& [name, count] : numbers) fmt::print(" {} {};", name, count);
    fmt::print("\n");
  };
  list("kinds", counts.kinds);
  list("no jump because", counts.passed_over);
  list("refused", counts.refusals);
  fmt::print("  smaller than {} bytes: {}, {} of them patchable\n", kSmallest, counts.smaller,
             counts.smaller_patchable);
  fmt::print(
      "  {:.1f} MB of code; read with its {} targets in {:.3f} s of CPU time ({:.0f} MB/s), {} "
      "bytes not "
      "decoded;"
      " sites in {:.3f} s\n",
      static_cast<double>(module.code_size()) / 1e6, module.targets().Count(), counts.read_seconds,
      static_cast<double>(module.code_size()) / 1e6 / counts.read_seconds,
      module.targets().undecodable_bytes(), counts.seconds);
}

Result<std::unique_ptr<tracer::ModuleCode>> ReadModule(const std::string& path,
                                                       Executor& executor) {
  TRY_ASSIGN(FileImagePtr file, os::MapFile(path));
  return tracer::ModuleCode::Read(std::move(file), nullptr, executor);
}

int Run(int argc, char** argv) {
  double at_least = 0;
  bool verbose = false;
  int failed = 0;
  const auto executor = os::MakeThreadPool(0);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    constexpr std::string_view kAtLeast = "--at-least=";
    if (argument == "-v") {
      verbose = true;
      continue;
    }
    if (argument.starts_with(kAtLeast)) {
      at_least = std::strtod(argument.c_str() + kAtLeast.size(), nullptr);
      continue;
    }
    const std::clock_t read_begin = std::clock();
    const auto module = ReadModule(argument, *executor);
    if (!module) {
      fmt::print(stderr, "{}\n", module.error().ToString());
      return 1;
    }
    Counts counts;
    counts.read_seconds = static_cast<double>(std::clock() - read_begin) / CLOCKS_PER_SEC;
    const std::clock_t begin = std::clock();
    for (const auto& function : (*module)->functions()) {
      CountFunction(**module, function, verbose, counts);
    }
    counts.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    Print(argument, **module, counts);
    if (PercentOf(counts.patchable, counts.functions) < at_least) ++failed;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) { return stackreel::Run(argc, argv); }
