#include "tracer/signal_frames.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/bytes.h"

namespace stackreel::tracer {

namespace {

constexpr uint64_t kStackWord = 8;
// Of a stack that nobody says the end of (a coroutine's, in the heap) no more is looked at; a
// handler that has more than this above it on its own stack is not known of.
constexpr uint64_t kMostOfStack = uint64_t{16} << 20;
constexpr size_t kMostFrames = 64;
// mov rax, 15; syscall, in the forms that assemblers choose.
constexpr std::array<uint8_t, 9> kLongForm = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
constexpr std::array<uint8_t, 7> kShortForm = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

// From the word that holds the restorer's address: a ucontext_t as x86-64's kernel makes it,
// smaller than glibc's, whose mask has 128 bytes (asm/sigcontext.h, asm-generic/ucontext.h).
constexpr uint64_t kContext = kStackWord;
constexpr uint64_t kRegisters = kContext + 40;  // r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx
constexpr uint64_t kSpPlace = kRegisters + 15 * kStackWord;
constexpr uint64_t kIpPlace = kRegisters + 16 * kStackWord;
constexpr uint64_t kSegments = kRegisters + 18 * kStackWord;
constexpr uint64_t kMask = kContext + 296;
constexpr uint64_t kSigInfo = kMask + kStackWord;
constexpr uint64_t kFrameSize = kSigInfo + 12;  // as far as si_code
static_assert(kSigInfo == 312);
#if defined(__x86_64__)
static_assert(kIpPlace ==
              kContext + offsetof(ucontext_t, uc_mcontext.gregs) + (REG_RIP * sizeof(greg_t)));
static_assert(kSpPlace ==
              kContext + offsetof(ucontext_t, uc_mcontext.gregs) + (REG_RSP * sizeof(greg_t)));
static_assert(kSegments ==
              kContext + offsetof(ucontext_t, uc_mcontext.gregs) + (REG_CSGSFS * sizeof(greg_t)));
static_assert(kMask == kContext + offsetof(ucontext_t, uc_sigmask));
#endif
constexpr uint16_t kUserCode64 = 0x33;

}  // namespace

SignalFrameFinder::SignalFrameFinder(std::span<const os::ProcMapping> mapped, MemoryRead read)
    : mapped_(mapped), read_(std::move(read)) {
  for (const os::ProcMapping& mapping : mapped) {
    if ((mapping.prot & PROT_EXEC) != 0) code_.push_back({Avma(mapping.start), Avma(mapping.end)});
  }
}

const os::ProcMapping* SignalFrameFinder::MappingOf(Avma at) const {
  const auto after = std::ranges::upper_bound(mapped_, at.value, {}, &os::ProcMapping::start);
  if (after == mapped_.begin()) return nullptr;
  const os::ProcMapping& mapping = *std::prev(after);
  return at.value < mapping.end ? &mapping : nullptr;
}

bool SignalFrameFinder::IsRestorer(Avma at) {
  const auto after = std::ranges::upper_bound(code_, at, {}, &patch::AddressRange::start);
  if (after == code_.begin() || !std::prev(after)->Contains(at)) return false;
  const auto [known, is_new] = restorers_.emplace(at, false);
  if (!is_new) return known->second;
  std::array<uint8_t, kLongForm.size()> bytes = {};
  known->second =
      read_(at, bytes) &&
      (bytes == kLongForm || std::equal(kShortForm.begin(), kShortForm.end(), bytes.begin()));
  return known->second;
}

// At its start, at its system call, or behind that.
bool SignalFrameFinder::IsInRestorer(Avma ip) {
  constexpr uint64_t kSystemCall = 2;
  for (const uint64_t size : {kLongForm.size(), kShortForm.size()}) {
    for (const uint64_t back : {uint64_t{0}, size - kSystemCall, size}) {
      if (ip.value > back && IsRestorer(ip - back)) return true;
    }
  }
  return false;
}

std::vector<SignalFrame> SignalFrameFinder::Find(Avma ip, Avma sp) {
  std::vector<SignalFrame> frames;
  if (IsInRestorer(ip)) {
    // Its own address has been popped.
    if (const auto frame = FrameAt(sp - kStackWord)) {
      frames.push_back(*frame);
      sp = frame->sp;
    }
  }
  while (frames.size() < kMostFrames) {
    const auto next = FindAbove(sp, frames);
    if (!next) break;
    sp = *next;
  }
  return frames;
}

std::optional<SignalFrame> SignalFrameFinder::FrameAt(Avma at) {
  std::array<uint8_t, kFrameSize> bytes = {};
  if (!read_(at, bytes)) return std::nullopt;
  const auto word = [&bytes](uint64_t offset) {
    return LoadUnaligned<uint64_t>(&bytes[offset], Endian::kLittle);
  };
  // What looks like one but cannot be returned to is none: a stale word.
  if ((word(kSegments) & UINT16_MAX) != kUserCode64) return std::nullopt;
  SignalFrame frame;
  frame.ip = Avma(word(kIpPlace));
  frame.sp = Avma(word(kSpPlace));
  frame.ip_place = at + kIpPlace;
  if (MappingOf(frame.ip) == nullptr || MappingOf(frame.sp) == nullptr) return std::nullopt;
  const auto number = LoadUnaligned<int32_t>(&bytes[kSigInfo], Endian::kLittle);
  const auto code = LoadUnaligned<int32_t>(&bytes[kSigInfo + 8], Endian::kLittle);
  frame.of_breakpoint = number == SIGTRAP && code == SI_KERNEL;
  return frame;
}

// Adds the innermost frame at or above `sp` on its stack; gives where to look on, nothing if there
// is none.
std::optional<Avma> SignalFrameFinder::FindAbove(Avma sp, std::vector<SignalFrame>& frames) {
  const os::ProcMapping* stack = MappingOf(sp);
  if (stack == nullptr) return std::nullopt;
  const Avma end = std::min(Avma(stack->end), sp + kMostOfStack);
  Avma at((sp.value + kStackWord - 1) / kStackWord * kStackWord);
  constexpr uint64_t kPiece = 64 << 10;
  std::vector<uint8_t> bytes;
  while (at < end) {
    bytes.resize(std::min(kPiece, end - at) / kStackWord * kStackWord);
    if (bytes.empty() || !read_(at, bytes)) return std::nullopt;
    for (size_t i = 0; i < bytes.size(); i += kStackWord) {
      if (!IsRestorer(Avma(LoadUnaligned<uint64_t>(&bytes[i], Endian::kLittle)))) continue;
      const auto frame = FrameAt(at + i);
      if (!frame) continue;
      frames.push_back(*frame);
      // On the same stack it leads upwards; what is below it belongs to its handler.
      const bool same = MappingOf(frame->sp) == stack;
      return same && frame->sp < at + i ? at + i + kStackWord : frame->sp;
    }
    at = at + bytes.size();
  }
  return std::nullopt;
}

}  // namespace stackreel::tracer
