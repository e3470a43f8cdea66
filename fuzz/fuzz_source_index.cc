// An ELF file with debug information, damaged, through SourceIndex and Symbolizer. The one input
// is also the .dwo, the .dwp and the supplementary file that it may refer to.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/memory_io.h"
#include "dwarf/source_index.h"
#include "elf/image.h"
#include "symbolize/symbolizer.h"

namespace stackreel {
namespace {

// Each lookup costs time that grows with the input at most by its logarithm, once units are read.
constexpr uint64_t kMaxLookups = 256;

class OneFile : public symbolize::ModuleFileProvider {
 public:
  explicit OneFile(FileImagePtr file) : file_(std::move(file)) {}
  symbolize::ModuleFiles FilesOf(const session::Module& /*module*/) override {
    symbolize::ModuleFiles files;
    files.main = file_;
    files.alt_file = [this](std::string_view, ByteView) { return file_; };
    files.dwo_file = [this](std::string_view, std::string_view) { return file_; };
    return files;
  }

 private:
  FileImagePtr file_;
};

// Addresses in and around each section that may hold code.
std::vector<Svma> Addresses(const elf::Image& image) {
  std::vector<Svma> addresses = {Svma(0), Svma(UINT64_MAX)};
  for (const elf::Section& section : image.sections()) {
    if ((section.flags & /*SHF_EXECINSTR*/ 4) == 0) continue;
    const uint64_t step = std::max<uint64_t>(1, section.size / (kMaxLookups / 4));
    for (uint64_t at = 0; at < section.size && addresses.size() < kMaxLookups; at += step) {
      addresses.emplace_back(section.addr + at);
    }
  }
  return addresses;
}

}  // namespace
}  // namespace stackreel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stackreel;  // NOLINT(google-build-using-namespace)
  const auto file = std::make_shared<MemoryImage>(std::vector<uint8_t>(data, data + size), "input");
  const auto image = elf::Image::Parse(file->bytes());
  if (!image) return 0;
  OneFile provider(file);
  Counters counters;
  symbolize::Symbolizer symbolizer(provider, {.inlines = true, .lines = true}, counters);
  const session::Module module;
  for (const Svma svma : Addresses(*image)) {
    const auto frames = symbolizer.Find(0, module, svma);
    CHECK(!frames.empty());
    CHECK(!frames.back().inlined);
    for (const symbolize::SymbolizedFrame& frame : frames) {
      CHECK(symbolizer.Text(frame.file).size() <= 3 * size + 3);
    }
  }
  auto index = dwarf::SourceIndex::Open(file, {}, {.lines = false});
  if (!index) return 0;
  for (const Svma svma : Addresses(*image)) {
    const auto prototype = (*index)->PrototypeAt(svma);
    if (!prototype) CHECK(!prototype.error().empty());
  }
  return 0;
}
