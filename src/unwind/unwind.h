// Registers + stack bytes + modules + mask → frames. No file, no process, no system call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/counters.h"
#include "dwarf/cfi.h"
#include "elf/image.h"
#include "unwind/detours.h"

namespace stackreel::unwind {

enum class Arch : uint8_t {
  kX86_64,
  kX86,  // a 32-bit task
  kAarch64,
  kOther,  // not unwound: 32-bit Arm tasks, and all other CPUs
};
// PERF_SAMPLE_REGS_ABI_32 and _64 of uapi/linux/perf_event.h: bits, others may stand beside them.
inline constexpr uint64_t kRegsAbi32 = 1, kRegsAbi64 = 2;
// `elf_machine`: EM_* of the recording, 0 if it does not say (x86-64 then); `regs_abi`:
// PERF_SAMPLE_REGS_ABI_* of the sample's user registers.
Arch ArchOf(uint16_t elf_machine, uint64_t regs_abi);
// perf's number of the stack pointer (asm/perf_regs.h).
unsigned StackPointerOf(Arch arch);

// How a frame was found; higher is less sure.
enum class FrameOrigin : uint8_t {
  kSampled,       // the registers at the sample
  kCfi,           // call-frame information
  kLeafLr,        // arm64: no FDE, the link register
  kFramePointer,  // frame-pointer chain, checked
  kKernelChain,   // the kernel's own callchain
  kStackScan,     // guessed (off by default)
};

// How a stack ended.
enum class StackEnd : uint8_t {
  kRoot,           // an outermost frame: undefined return address, or 0
  kDumpExhausted,  // needs a word past the dumped bytes: the stack is truncated
  kNoMapping,      // a return address in no mapping
  kNoCfi,          // no rule for this pc, and the fallback found nothing
  kBadCfa,         // the CFA went down or is not on this stack
  kNoAdvance,      // the same frame again
  kBadCfi,         // the rule could not be applied
  kNoRegisters,    // the sample has no user registers (kernel thread, idle)
  kUnsupported,    // a task of another architecture
  kTraced,         // a tracer keeps the return address, and it could not be told which it is
  kLimit,          // more frames than asked for
};
const char* StackEndName(StackEnd end);

struct Frame {
  CodeAddress address;
  FrameOrigin origin = FrameOrigin::kSampled;
  bool signal = false;  // this frame is a signal trampoline: the next one's pc is exact
};

// General registers by perf's number for the architecture (asm/perf_regs.h), `valid` a bit each.
struct Registers {
  static constexpr unsigned kMax = 33;
  uint64_t values[kMax] = {};
  uint64_t valid = 0;

  void Set(unsigned reg, uint64_t value) {
    values[reg] = value;
    valid |= uint64_t{1} << reg;
  }
  [[nodiscard]] bool Has(unsigned reg) const { return ((valid >> reg) & 1) != 0; }
};

// Dumped stack bytes, the first of which is at `start` (the sampled stack pointer).
class StackView {
 public:
  StackView() = default;
  StackView(Avma start, ByteView bytes, Endian endian = Endian::kLittle)
      : start_(start.value), bytes_(bytes), endian_(endian) {}
  [[nodiscard]] Avma start() const { return Avma(start_); }
  [[nodiscard]] Avma end() const { return Avma(start_ + bytes_.size()); }
  [[nodiscard]] ByteView bytes() const { return bytes_; }
  [[nodiscard]] Endian endian() const { return endian_; }

  // The last whole word counts: offset + 8 <= size.
  [[nodiscard]] bool Read64(uint64_t address, uint64_t& value) const {
    const uint64_t offset = address - start_;
    if (bytes_.size() < 8 || offset > bytes_.size() - 8) return false;
    value = LoadUnaligned<uint64_t>(bytes_.data() + offset, endian_);
    return true;
  }
  [[nodiscard]] bool Read32(uint64_t address, uint32_t& value) const {
    const uint64_t offset = address - start_;
    if (bytes_.size() < 4 || offset > bytes_.size() - 4) return false;
    value = LoadUnaligned<uint32_t>(bytes_.data() + offset, endian_);
    return true;
  }

 private:
  uint64_t start_ = 0;
  ByteView bytes_;
  Endian endian_ = Endian::kLittle;
};

// What the unwinder knows of one binary; shared by all processes and threads, immutable.
class UnwindModule {
 public:
  // `image` must outlive it (or be null: a module with no file, frame pointers only).
  // `debug_image`, if any, is asked for .debug_frame where the image has none; it must outlive it
  // too.
  static std::shared_ptr<const UnwindModule> Make(const elf::Image* image,
                                                  const elf::Image* debug_image);
  // A module of call-frame information that is in no file, with the bytes that `sections` views.
  static std::shared_ptr<const UnwindModule> OfSections(const dwarf::FrameSections& sections,
                                                        std::vector<elf::SectionBytes> owned);
  [[nodiscard]] const dwarf::FrameTable& frames() const { return frames_; }
  // Bytes of the file at a svma, for signal trampolines and expression reads.
  [[nodiscard]] ByteView BytesAt(Svma svma) const;
  // The same, but nothing where the process may have written since: expressions read these.
  [[nodiscard]] ByteView ReadOnlyBytesAt(Svma svma) const;
  [[nodiscard]] const elf::Image* image() const { return image_; }
  // A number that no other UnwindModule has had in this process.
  [[nodiscard]] uint32_t serial() const { return serial_; }

  UnwindModule(dwarf::FrameTable frames, const elf::Image* image, uint32_t serial,
               std::vector<elf::SectionBytes> owned);

 private:
  dwarf::FrameTable frames_;
  const elf::Image* image_;
  uint32_t serial_;
  std::vector<elf::SectionBytes> owned_;  // what frames_ views and no image has
};

// One executable (or readable) range of a process.
struct UnwindMapping {
  uint64_t start = 0, end = 0;
  uint64_t bias = 0;                     // avma - svma
  const UnwindModule* module = nullptr;  // null: no file known
  bool executable = true;
};

// All ranges of a process at a time, sorted by start, not overlapping.
struct UnwindMaps {
  std::vector<UnwindMapping> mappings;
  // Differs from that of every other UnwindMaps in this process whose executable mappings differ.
  uint64_t version = 0;
  std::vector<std::shared_ptr<const UnwindModule>> keep;

  [[nodiscard]] const UnwindMapping* Find(uint64_t avma) const;
  // The executable mapping of code at `pc`, or (not `exact`) in front of it, where the call is. But
  // a signal trampoline, which may begin its mapping, is returned to without having called.
  [[nodiscard]] const UnwindMapping* FindCode(uint64_t pc, bool exact) const;
};

struct UnwindInput {
  Arch arch = Arch::kX86_64;
  Registers registers;
  StackView stack;
  bool stack_was_cut = false;  // the dump was as large as asked for: the stack may go on
  const UnwindMaps* maps = nullptr;
  uint64_t code_mask = 0;  // arm64: bits to strip from code addresses of the user half
  size_t max_frames = 1024;
  // Of a process that is traced, and when the stack was as it is, in the ticks of its trace; 0: not
  // known.
  const Detours* detours = nullptr;
  uint64_t ticks = 0;
};

// Caches of one thread: pc → rule, direct-mapped, and the decoded rules of each module.
class Unwinder {
 public:
  Unwinder();
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  // Appends frames to `out`, innermost (the sampled pc) first, and says how the stack ended. Never
  // appends frames 0 or -1.
  StackEnd Unwind(const UnwindInput& input, std::vector<Frame>& out);
  // Starts the loads that unwinding `stack` will likely need: the next sample's, while this one is
  // unwound. Best if it is of the same thread as the last one.
  void Prefetch(const StackView& stack) const;
  // "unwind.restart_full", "unwind.fp_fallback", "unwind.cache_miss", …
  [[nodiscard]] const Counters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stackreel::unwind
