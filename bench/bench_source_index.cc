// Reading debug information and asking it, over this program's own, or that of the file that
// STACKREEL_BENCH_BINARY names.
//
// units:  open the file, and read every unit that one of 1,000 random addresses is in; per byte of
//         debug information
// source: frames of an address, inlined functions and lines with them, once its unit is read
// cold:   the same through the symbolizer, each address once: with the symbol table and the cache
// cached: addresses the symbolizer has seen
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "dwarf/source_index.h"
#include "elf/image.h"
#include "os/file.h"
#include "symbolize/symbolizer.h"

namespace stackreel {
namespace {

constexpr size_t kAddresses = 100'000;

struct Binary {
  FileImagePtr file;
  uint64_t debug_bytes = 0;
  std::vector<Svma> addresses;  // random ones in .text
};
const Binary* binary = nullptr;

class OneFile : public symbolize::ModuleFileProvider {
 public:
  symbolize::ModuleFiles FilesOf(const session::Module& /*module*/) override {
    symbolize::ModuleFiles files;
    files.main = binary->file;
    return files;
  }
};

std::unique_ptr<dwarf::SourceIndex> OpenIndex() {
  return std::move(*dwarf::SourceIndex::Open(binary->file, {}));
}

void Units(benchmark::State& state) {
  for (auto _ : state) {
    const auto index = OpenIndex();
    for (size_t i = 0; i < 1000; ++i) benchmark::DoNotOptimize(index->Find(binary->addresses[i]));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(binary->debug_bytes));
}

void Source(benchmark::State& state) {
  const auto index = OpenIndex();
  for (const Svma svma : binary->addresses) index->Find(svma);
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(index->Find(binary->addresses[i]));
    i = i + 1 == kAddresses ? 0 : i + 1;
  }
}

const symbolize::SymbolizeOptions kPlain = {};
const symbolize::SymbolizeOptions kInlines = {.inlines = true};

// Module numbers tell one round's addresses from the next one's.
void Cold(benchmark::State& state, const symbolize::SymbolizeOptions& options) {
  OneFile provider;
  Counters counters;
  const session::Module module;
  auto symbolizer = std::make_unique<symbolize::Symbolizer>(provider, options, counters);
  symbolizer->Find(0, module, binary->addresses[0]);
  size_t i = 0;
  for (auto _ : state) {
    if (i == kAddresses) {
      state.PauseTiming();
      symbolizer = std::make_unique<symbolize::Symbolizer>(provider, options, counters);
      for (size_t k = 0; k < kAddresses; k += 100)
        symbolizer->Find(0, module, binary->addresses[k]);
      i = 0;
      state.ResumeTiming();
    }
    benchmark::DoNotOptimize(symbolizer->Find(0, module, binary->addresses[i++]));
  }
}

void Cached(benchmark::State& state) {
  OneFile provider;
  Counters counters;
  const session::Module module;
  symbolize::Symbolizer symbolizer(provider, kInlines, counters);
  constexpr size_t kSeen = 4096;  // as a recording has them: few, again and again
  for (size_t i = 0; i < kSeen; ++i) symbolizer.Find(0, module, binary->addresses[i]);
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(symbolizer.Find(0, module, binary->addresses[i]));
    i = (i + 1) % kSeen;
  }
}

Result<Binary> Load(const std::string& path) {
  Binary out;
  TRY_ASSIGN(out.file, os::MapFile(path));
  TRY_ASSIGN(const elf::Image image, elf::Image::Parse(out.file->bytes()));
  for (const elf::Section& section : image.sections()) {
    if (section.name.starts_with(".debug_")) out.debug_bytes += section.size;
  }
  const elf::Section* text = image.FindSection(".text");
  if (text == nullptr || text->size == 0 || out.debug_bytes == 0) {
    return Fail(ErrorKind::kNotFound, fmt::format("{}: no .text or no debug information", path));
  }
  std::mt19937_64 random(1);
  for (size_t i = 0; i < kAddresses; ++i) {
    out.addresses.emplace_back(text->addr + random() % text->size);
  }
  return out;
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) {
  using namespace stackreel;  // NOLINT(google-build-using-namespace)
  const char* path = std::getenv("STACKREEL_BENCH_BINARY");
  static const Result<Binary> kLoaded = Load(path != nullptr ? path : "/proc/self/exe");
  if (!kLoaded) {
    fmt::print(stderr, "{}\n", kLoaded.error().ToString());
    return 1;
  }
  binary = &*kLoaded;
  benchmark::RegisterBenchmark("units", Units)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("source", Source);
  benchmark::RegisterBenchmark("cold/plain", Cold, kPlain);
  benchmark::RegisterBenchmark("cold/inlines", Cold, kInlines);
  benchmark::RegisterBenchmark("cached", Cached);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
