// Unwinds stacks of this very process and holds them against glibc's backtrace().
#include <elf.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "elf/image.h"
#include "os/file.h"
#include "os/pointer_authentication.h"
#include "os/proc.h"
#include "unwind/unwind.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind {
namespace {

// Files and modules of the executable mappings of this process as they are now.
class OwnMaps {
 public:
  OwnMaps() {
    const auto mappings = os::ReadProcMaps(static_cast<uint32_t>(getpid()));
    if (!mappings) return;
    for (const os::ProcMapping& mapping : *mappings) {
      if ((mapping.prot & 4) == 0) continue;
      UnwindMapping entry;
      entry.start = mapping.start;
      entry.end = mapping.end;
      if (const File* file = Load(mapping.path)) {
        const auto svma = file->image->SvmaOf(FileOffset(mapping.offset));
        entry.module = file->module.get();
        entry.bias = mapping.start - svma.value_or(Svma(mapping.offset)).value;
      }
      maps_.mappings.push_back(entry);
    }
    static uint64_t version = uint64_t{1} << 40;
    maps_.version = ++version;
  }
  [[nodiscard]] const UnwindMaps& maps() const { return maps_; }

 private:
  struct File {
    FileImagePtr mapped;
    std::vector<uint8_t> copied;
    std::optional<elf::Image> image;
    std::shared_ptr<const UnwindModule> module;
  };

  const File* Load(const std::string& path) {
    auto [it, fresh] = files_.try_emplace(path);
    File& file = it->second;
    if (fresh) {
      if (path == "[vdso]") {
        file.copied = os::ReadOwnVdso();
      } else if (auto mapped = os::MapFile(path)) {
        file.mapped = *mapped;
      }
      auto image = elf::Image::Parse(file.mapped ? file.mapped->bytes() : ByteView(file.copied));
      if (image) {
        file.image = *std::move(image);
        file.module = UnwindModule::Make(&*file.image, nullptr);
      }
    }
    return file.module ? &file : nullptr;
  }

  std::map<std::string, File> files_;
  UnwindMaps maps_;
};

// Also what lies between variables, where AddressSanitizer lets no access go, nor memcpy's.
[[gnu::no_sanitize_address]] void CopyAsTheKernelDoes(uint64_t from, std::vector<uint8_t>& to) {
  const auto* bytes = reinterpret_cast<const volatile uint8_t*>(from);
  uint8_t* const out = to.data();
  for (size_t i = 0, count = to.size(); i < count; ++i) out[i] = bytes[i];
}

#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_X86_64;
#endif

// Registers, and the stack from sp on.
struct OwnStack {
  Registers registers;
  uint64_t start = 0;
  std::vector<uint8_t> bytes;

  [[nodiscard]] UnwindInput Input(const UnwindMaps& maps) const {
    UnwindInput input;
    input.arch = ArchOf(kMachine, kRegsAbi64);
    input.registers = registers;
    if (const auto pac = os::LearnPointerAuthentication()) input.code_mask = pac->insn_mask;
    input.stack = StackView(Avma(start), bytes);
    input.maps = &maps;
    return input;
  }
  // Copies from registers' sp to the end of this thread's stack, at most `limit` bytes.
  void CopyFromSp(size_t limit) {
    pthread_attr_t attributes;
    void* low = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    start = registers.values[StackPointerOf(ArchOf(kMachine, kRegsAbi64))];
    const uint64_t end = reinterpret_cast<uint64_t>(low) + size;
    const uint64_t count = end > start ? std::min<uint64_t>(end - start, limit) : limit;
    bytes.resize(count);
    CopyAsTheKernelDoes(start, bytes);
  }
};

// The state at this place of the function it is inlined into.
[[gnu::always_inline]] inline void CaptureOwnStack(OwnStack& out, size_t limit = 1 << 16) {
#if defined(__aarch64__)
  uint64_t saved[14];
  asm volatile(
      "stp x19, x20, [%0]\n\tstp x21, x22, [%0, #16]\n\tstp x23, x24, [%0, #32]\n\t"
      "stp x25, x26, [%0, #48]\n\tstp x27, x28, [%0, #64]\n\tstp x29, x30, [%0, #80]\n\t"
      "mov x9, sp\n\tadr x10, .\n\tstp x9, x10, [%0, #96]"
      :
      : "r"(saved)
      : "x9", "x10", "memory");
  constexpr unsigned kFirst = 19;  // x19-x30, sp, pc are perf's 19 to 32
  for (unsigned i = 0; i < 14; ++i) out.registers.Set(kFirst + i, saved[i]);
#else
  uint64_t saved[8];
  asm volatile(
      "lea 0(%%rip), %%rax\n\tmov %%rax, 0(%0)\n\tmov %%rsp, 8(%0)\n\tmov %%rbp, 16(%0)\n\t"
      "mov %%rbx, 24(%0)\n\tmov %%r12, 32(%0)\n\tmov %%r13, 40(%0)\n\tmov %%r14, 48(%0)\n\t"
      "mov %%r15, 56(%0)"
      :
      : "r"(saved)
      : "rax", "memory");
  constexpr unsigned kPerf[] = {x86_64::kPerfIp,     x86_64::kPerfSp,     x86_64::kPerfBp,
                                x86_64::kPerfBx,     x86_64::kPerfR8 + 4, x86_64::kPerfR8 + 5,
                                x86_64::kPerfR8 + 6, x86_64::kPerfR8 + 7};
  for (unsigned i = 0; i < 8; ++i) out.registers.Set(kPerf[i], saved[i]);
#endif
  out.CopyFromSp(limit);
}

struct Truth {
  OwnStack stack;
  std::vector<void*> frames;
};

[[gnu::always_inline]] inline void Capture(Truth& out) {
  CaptureOwnStack(out.stack);
  out.frames.resize(256);
  const int count = backtrace(out.frames.data(), static_cast<int>(out.frames.size()));
  out.frames.resize(static_cast<size_t>(count));
  // A sanitizer's own backtrace() is one more frame, between this function and glibc's.
  const void* const caller = __builtin_return_address(0);
  const auto found = std::find(out.frames.begin(), out.frames.end(), caller);
  if (found - out.frames.begin() > 1) out.frames.erase(out.frames.begin(), found - 1);
}

// The frames above the innermost, whose pc the two see at different instructions.
void ExpectSame(const Truth& truth) {
  const OwnMaps maps;
  Unwinder unwinder;
  for (int round = 0; round < 2; ++round) {  // the second from the cache
    std::vector<Frame> frames;
    const StackEnd end = unwinder.Unwind(truth.stack.Input(maps.maps()), frames);
    EXPECT_STREQ(StackEndName(end), "root");
    ASSERT_EQ(frames.size(), truth.frames.size());
    for (size_t i = 1; i < frames.size(); ++i) {
      EXPECT_EQ(frames[i].address.avma.value, reinterpret_cast<uint64_t>(truth.frames[i])) << i;
    }
  }
}

[[gnu::noinline]] int Recurse(int depth, Truth& out) {
  volatile char pad[40] = {};
  if (depth > 0) return Recurse(depth - 1, out) + pad[0];
  Capture(out);
  return pad[1];
}

TEST(OwnProcess, Recursion) {
  Truth truth;
  Recurse(20, truth);
  ASSERT_GT(truth.frames.size(), 20u);
  ExpectSame(truth);
}

TEST(OwnProcess, ThreadEndsAtItsRoot) {
  Truth truth;
  std::thread([&] { Recurse(3, truth); }).join();
  ASSERT_GT(truth.frames.size(), 4u);
  ExpectSame(truth);
}

// A function with a realigned stack: its CFA is an expression.
[[gnu::noinline]] int Realigned(Truth& out) {
  alignas(128) volatile char pad[256] = {};
  asm volatile("" : : "r"(pad) : "memory");
  return Recurse(2, out) + pad[3];
}

TEST(OwnProcess, RealignedStack) {
  Truth truth;
  Realigned(truth);
  ExpectSame(truth);
}

Truth* signal_truth = nullptr;
void OnSignal(int) { Capture(*signal_truth); }

TEST(OwnProcess, SignalHandler) {
  Truth truth;
  signal_truth = &truth;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  ASSERT_EQ(raise(SIGUSR1), 0);
  ExpectSame(truth);
  const OwnMaps maps;
  std::vector<Frame> frames;
  Unwinder().Unwind(truth.stack.Input(maps.maps()), frames);
  ASSERT_GT(frames.size(), 3u);
  EXPECT_TRUE(frames[1].signal);
  EXPECT_EQ(frames[2].address.kind, CodeAddressKind::kInstructionPointer);
  EXPECT_EQ(frames[3].address.kind, CodeAddressKind::kReturnAddress);
}

}  // namespace
}  // namespace stackreel::unwind
