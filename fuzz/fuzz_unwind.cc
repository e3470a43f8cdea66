// Any CFI, code, registers and stack: unwinding ends, within its limit, and the fast path gives
// what the path with all registers gives.
//   flags 1 · registers 24 × 8 · size of .eh_frame 2 · size of code 2 · .eh_frame · code · stack
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/byte_reader.h"
#include "elf/elf_writer.h"
#include "unwind/unwind.h"
#include "unwind/x86_64/full_unwinder.h"

namespace {

using stackreel::ByteReader;
using stackreel::ByteView;
using stackreel::unwind::Frame;
namespace unwind = stackreel::unwind;

constexpr uint64_t kBias = 0x10000000;
constexpr uint64_t kText = 0x1000;
constexpr uint64_t kEhFrame = 0x20000;
constexpr uint64_t kStack = 0x7ff00000;

std::vector<uint8_t> MakeFile(bool is_64bit, ByteView eh_frame, ByteView code) {
  namespace elf = stackreel::elf;
  elf::ElfWriter writer(is_64bit ? elf::Class::k64 : elf::Class::k32, stackreel::Endian::kLittle,
                        is_64bit ? EM_X86_64 : EM_386);
  const uint32_t text =
      writer.Add({.name = ".text", .addr = kText, .bytes = elf::ElfWriter::Copy(code)});
  const uint32_t frames =
      writer.Add({.name = ".eh_frame", .addr = kEhFrame, .bytes = elf::ElfWriter::Copy(eh_frame)});
  writer.AddSegment(PT_LOAD, PF_R | PF_X, text);
  writer.AddSegment(PT_LOAD, PF_R, frames);
  return writer.Take();
}

template <class Cpu>
unwind::StackEnd UnwindFull(const unwind::UnwindInput& input, std::vector<Frame>& out) {
  unwind::Counts counts;
  return unwind::x86_64::FullUnwinder<Cpu>(counts).Unwind(input, out);
}

void CheckFrames(const unwind::UnwindInput& input, const std::vector<Frame>& frames) {
  if (frames.size() > input.max_frames) std::abort();
  const bool is_32bit = input.arch == unwind::Arch::kX86;
  for (const Frame& frame : frames) {
    const uint64_t pc = frame.address.avma.value;
    if (pc == 0 || pc == (is_32bit ? UINT32_MAX : UINT64_MAX)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader reader(ByteView(data, size));
  const uint8_t flags = reader.U8();
  const bool is_64bit = (flags & 1) == 0;
  unwind::UnwindInput input;
  input.arch = is_64bit ? unwind::Arch::kX86_64 : unwind::Arch::kX86;
  input.stack_was_cut = (flags & 2) != 0;
  input.max_frames = 64;
  for (unsigned reg = 0; reg < 24; ++reg) input.registers.Set(reg, reader.U64());
  const uint16_t eh_frame_size = reader.U16();
  const uint16_t code_size = reader.U16();
  const ByteView eh_frame = reader.Bytes(std::min<size_t>(eh_frame_size, reader.remaining()));
  const ByteView code = reader.Bytes(std::min<size_t>(code_size, reader.remaining()));
  if (code.empty()) return 0;
  input.stack = unwind::StackView(stackreel::Avma(kStack), reader.Rest());

  const std::vector<uint8_t> file = MakeFile(is_64bit, eh_frame, code);
  const auto image = stackreel::elf::Image::Parse(file);
  if (!image) std::abort();
  const auto module = unwind::UnwindModule::Make(&*image, nullptr);
  static uint64_t version = 0;
  unwind::UnwindMaps maps;
  maps.version = ++version;
  unwind::UnwindMapping mapping;
  mapping.bias = kBias;
  mapping.module = module.get();
  mapping.start = kBias + kText;
  mapping.end = mapping.start + code.size();
  maps.mappings.push_back(mapping);
  mapping.start = kBias + kEhFrame;
  mapping.end = mapping.start + 0x10000;
  mapping.executable = (flags & 4) != 0;
  maps.mappings.push_back(mapping);
  input.maps = &maps;

  static unwind::Unwinder unwinder;
  std::vector<Frame> fast;
  const unwind::StackEnd end = unwinder.Unwind(input, fast);
  CheckFrames(input, fast);
  std::vector<Frame> full;
  const unwind::StackEnd full_end = is_64bit ? UnwindFull<unwind::x86_64::Cpu64>(input, full)
                                             : UnwindFull<unwind::x86_64::Cpu32>(input, full);
  const bool same = std::equal(
      fast.begin(), fast.end(), full.begin(), full.end(), [](const Frame& a, const Frame& b) {
        return a.address == b.address && a.origin == b.origin && a.signal == b.signal;
      });
  if (end != full_end || !same) std::abort();
  return 0;
}
