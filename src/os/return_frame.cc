#include "os/return_frame.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/user.h>

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace stackreel::os {
namespace {

constexpr std::array<uint8_t, 2> kSystemCall = {0x0f, 0x05};
constexpr std::array<uint8_t, 3> kSystemCallAndReturn = {0x0f, 0x05, 0xc3};
// As C libraries write it, by whose bytes unwinders know a signal frame.
constexpr std::array<uint8_t, 9> kRestorer = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

uint64_t FindIn(std::span<const uint8_t> code, uint64_t start, std::span<const uint8_t> what) {
  const auto found = std::ranges::search(code, what);
  return found.empty() ? 0 : start + static_cast<uint64_t>(found.begin() - code.begin());
}

bool Holds(uint64_t at, std::span<const uint8_t> what, const MemoryRead& read) {
  std::array<uint8_t, 16> bytes = {};
  const auto piece = std::span(bytes).first(what.size());
  return read(at, piece) && std::ranges::equal(piece, what);
}

}  // namespace

Result<SystemCallPlace> FindSystemCallPlace(std::vector<ProcMapping> maps, const MemoryRead& read) {
  constexpr uint64_t kMost = uint64_t{64} << 20;
  // Not what has no file: the very system calls may take that away.
  std::erase_if(maps, [](const ProcMapping& mapping) {
    return (mapping.prot & PROT_EXEC) == 0 || (mapping.ino == 0 && mapping.path != "[vdso]");
  });
  std::ranges::stable_sort(maps, {},
                           [](const ProcMapping& mapping) { return mapping.end - mapping.start; });
  uint64_t plain = 0, returning = 0, restorer = 0;
  for (const ProcMapping& mapping : maps) {
    std::vector<uint8_t> code(std::min(mapping.end - mapping.start, kMost));
    if (!read(mapping.start, code)) continue;
    if (plain == 0) plain = FindIn(code, mapping.start, kSystemCall);
    if (returning == 0) returning = FindIn(code, mapping.start, kSystemCallAndReturn);
    if (restorer == 0) restorer = FindIn(code, mapping.start, kRestorer);
    if (returning != 0 && restorer != 0) {
      return SystemCallPlace{.instruction = returning, .restorer = restorer};
    }
  }
  if (plain != 0) return SystemCallPlace{.instruction = plain};
  return Fail(ErrorKind::kUnsupported, "the process has no instruction that makes a system call");
}

bool HoldsSystemCallPlace(const SystemCallPlace& place, const MemoryRead& read) {
  if (place.restorer == 0) return Holds(place.instruction, kSystemCall, read);
  return Holds(place.instruction, kSystemCallAndReturn, read) &&
         Holds(place.restorer, kRestorer, read);
}

#if defined(__x86_64__)

namespace {

// struct _fpx_sw_bytes of asm/sigcontext.h, in the bytes that XSAVE leaves to software.
struct SoftwareBytes {
  uint32_t magic = 0x46505853;
  uint32_t extended_size = 0;
  uint64_t features = 0;
  uint32_t size = 0;
  std::array<uint32_t, 7> padding = {};
};
static_assert(sizeof(SoftwareBytes) == 48);
constexpr size_t kSoftwareBytesOffset = 464;
constexpr uint32_t kSecondMagic = 0x46505845;
constexpr size_t kLegacySize = 512, kHeaderSize = 64;
// Tiles, for which a thread's frames have no room unless it has asked the kernel for it.
constexpr uint64_t kTiles = uint64_t{3} << 17;

// What XSAVE takes for these features, not compacted: CPUID leaf 0dh.
size_t SizeOf(uint64_t features) {
  size_t end = kLegacySize + kHeaderSize;
  for (uint32_t i = 2; i < 63; ++i) {
    if ((features >> i & 1) == 0) continue;
    uint32_t size = 0, offset = 0, flags = 0, reserved = 0;
    __cpuid_count(0xd, i, size, offset, flags, reserved);
    end = std::max<size_t>(end, size_t{offset} + size);
  }
  return end;
}

// The vector state as a signal frame has it. Empty where there is none, as without XSAVE.
std::vector<uint8_t> AsInFrame(std::span<const uint8_t> state) {
  if (state.size() < kLegacySize + kHeaderSize) return {};
  uint64_t features = 0;
  // Here ptrace(2) says what the kernel has switched on.
  std::memcpy(&features, state.data() + kSoftwareBytesOffset, sizeof(features));
  features &= ~kTiles;
  const size_t size = SizeOf(features);
  if (size > state.size()) return {};
  std::vector<uint8_t> out(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(size));
  // What is saved of them, in the header.
  uint64_t saved = 0;
  std::memcpy(&saved, out.data() + kLegacySize, sizeof(saved));
  saved &= features;
  std::memcpy(out.data() + kLegacySize, &saved, sizeof(saved));
  const SoftwareBytes software = {
      .extended_size = static_cast<uint32_t>(size + sizeof(kSecondMagic)),
      .features = features,
      .size = static_cast<uint32_t>(size)};
  std::memcpy(out.data() + kSoftwareBytesOffset, &software, sizeof(software));
  const auto* magic = reinterpret_cast<const uint8_t*>(&kSecondMagic);
  out.insert(out.end(), magic, magic + sizeof(kSecondMagic));
  return out;
}

// The part of ucontext_t that the kernel knows: its set of signals is 8 bytes long.
constexpr size_t kContextSize = offsetof(ucontext_t, uc_sigmask) + sizeof(uint64_t);
static_assert(offsetof(ucontext_t, uc_mcontext) == 40 && kContextSize == 304);
// linux/ucontext.h: there is vector state of XSAVE; the stack segment is to be as it says.
constexpr unsigned long kContextFlags = 7;
// No mode of sigaltstack(2): the kernel passes over it, and leaves the thread's own.
constexpr int kNoSuchMode = 0x7f;

ucontext_t ContextOf(const user_regs_struct& regs, uint64_t vector_state) {
  ucontext_t context = {};
  context.uc_flags = kContextFlags;
  context.uc_stack.ss_flags = kNoSuchMode;
  auto& gregs = context.uc_mcontext.gregs;
  const auto set = [&gregs](int which, uint64_t value) {
    gregs[which] = static_cast<greg_t>(value);
  };
  set(REG_R8, regs.r8);
  set(REG_R9, regs.r9);
  set(REG_R10, regs.r10);
  set(REG_R11, regs.r11);
  set(REG_R12, regs.r12);
  set(REG_R13, regs.r13);
  set(REG_R14, regs.r14);
  set(REG_R15, regs.r15);
  set(REG_RDI, regs.rdi);
  set(REG_RSI, regs.rsi);
  set(REG_RBP, regs.rbp);
  set(REG_RBX, regs.rbx);
  set(REG_RDX, regs.rdx);
  set(REG_RAX, regs.rax);
  set(REG_RCX, regs.rcx);
  set(REG_RSP, regs.rsp);
  set(REG_RIP, regs.rip);
  set(REG_EFL, regs.eflags);
  // cs, gs, fs, ss
  set(REG_CSGSFS, (regs.cs & 0xffff) | (regs.ss & 0xffff) << 48);
  // The kernel's address of it.
  context.uc_mcontext.fpregs =
      reinterpret_cast<fpregset_t>(vector_state);  // NOLINT(performance-no-int-to-ptr)
  return context;
}

}  // namespace

ReturnFrame MakeReturnFrame(const TracedRegisters& registers, uint64_t blocked_signals,
                            std::span<const uint8_t> vector_state, uint64_t restorer) {
  constexpr uint64_t kRedZone = 128, kVectorAlignment = 64;
  TracedRegisters goes_on = registers;
  if (goes_on.MayRestart() && goes_on.system_call() != SYS_close) goes_on.BeginSystemCallAnew();
  const std::vector<uint8_t> vectors = AsInFrame(vector_state);
  if (vectors.empty()) return {};
  ReturnFrame frame;
  const uint64_t vectors_at =
      (registers.sp() - kRedZone - vectors.size()) & ~(kVectorAlignment - 1);
  // Kept a multiple of 16 below, as behind a call.
  frame.at = ((vectors_at - kContextSize) & ~uint64_t{15}) - sizeof(uint64_t);
  user_regs_struct regs;
  static_assert(sizeof(regs) == sizeof(goes_on.raw));
  std::memcpy(&regs, goes_on.raw.data(), sizeof(regs));
  const ucontext_t context = ContextOf(regs, vectors_at);
  frame.bytes.resize(vectors_at - frame.at + vectors.size());
  uint8_t* out = frame.bytes.data();
  std::memcpy(out, &restorer, sizeof(restorer));
  std::memcpy(out + sizeof(restorer), &context, kContextSize);
  std::memcpy(out + sizeof(restorer) + offsetof(ucontext_t, uc_sigmask), &blocked_signals,
              sizeof(blocked_signals));
  std::memcpy(out + (vectors_at - frame.at), vectors.data(), vectors.size());
  return frame;
}

#else

ReturnFrame MakeReturnFrame(const TracedRegisters&, uint64_t, std::span<const uint8_t>, uint64_t) {
  return {};
}

#endif

}  // namespace stackreel::os
