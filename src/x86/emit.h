// The few instructions that patching writes. Each function gives the bytes of one (Intel SDM
// volume 2); none allocates, so that an agent without a C library can use them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/address.h"
#include "base/bytes.h"

namespace stackreel::x86 {

inline constexpr size_t kShortJumpLength = 2;
inline constexpr size_t kJumpLength = 5;
inline constexpr size_t kAbsoluteJumpLength = 14;
inline constexpr uint8_t kInt3 = 0xcc;

// Registers by their number in an encoding.
enum class Register : uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15
};

// What to add to `end` to get to `target`; nothing if that takes more than 32 bits with sign.
constexpr std::optional<int32_t> Displacement(uint64_t end, uint64_t target) {
  const auto distance = static_cast<int64_t>(target - end);
  if (distance < std::numeric_limits<int32_t>::min() ||
      distance > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int32_t>(distance);
}

// `value`, lowest byte first, at code[offset].
template <typename T, size_t N>
constexpr void PutLittleEndian(std::array<uint8_t, N>& code, size_t offset, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    code[offset + i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

// An instruction that ends in a 32-bit displacement to `target`.
template <size_t N>
constexpr std::optional<std::array<uint8_t, N>> WithDisplacement(std::array<uint8_t, N> code,
                                                                 Avma at, Avma target) {
  const std::optional<int32_t> displacement = Displacement(at.value + N, target.value);
  if (!displacement) return std::nullopt;
  PutLittleEndian(code, N - 4, *displacement);
  return code;
}

// jmp rel32, call rel32 that stand at `at`; nothing if `target` is out of reach.
constexpr std::optional<std::array<uint8_t, kJumpLength>> Jump(Avma at, Avma target) {
  return WithDisplacement(std::array<uint8_t, kJumpLength>{0xe9}, at, target);
}
constexpr std::optional<std::array<uint8_t, kJumpLength>> Call(Avma at, Avma target) {
  return WithDisplacement(std::array<uint8_t, kJumpLength>{0xe8}, at, target);
}
// jmp rel8; nothing if `target` is out of its reach.
constexpr std::optional<std::array<uint8_t, kShortJumpLength>> ShortJump(Avma at, Avma target) {
  const auto distance = static_cast<int64_t>(target.value - (at.value + kShortJumpLength));
  if (distance < -128 || distance > 127) return std::nullopt;
  return std::array<uint8_t, kShortJumpLength>{0xeb, static_cast<uint8_t>(distance)};
}
// jmp qword [rip+0] and its operand: goes anywhere, changes no register.
constexpr std::array<uint8_t, kAbsoluteJumpLength> AbsoluteJump(Avma target) {
  std::array<uint8_t, kAbsoluteJumpLength> code{0xff, 0x25};
  PutLittleEndian(code, 6, target.value);
  return code;
}
// push qword [rip+displacement]: `displacement` counts from the end of its 6 bytes.
constexpr std::array<uint8_t, 6> PushMemory(int32_t displacement) {
  std::array<uint8_t, 6> code{0xff, 0x35};
  PutLittleEndian(code, 2, displacement);
  return code;
}
// push imm32: pushes 8 bytes, the number with its sign extended.
constexpr std::array<uint8_t, 5> PushNumber(int32_t value) {
  std::array<uint8_t, 5> code{0x68};
  PutLittleEndian(code, 1, value);
  return code;
}
// mov r32, imm32: clears the register's upper half. 6 bytes always: with a REX prefix that may say
// nothing.
constexpr std::array<uint8_t, 6> MoveNumber32(Register to, uint32_t value) {
  const auto number = static_cast<uint8_t>(to);
  std::array<uint8_t, 6> code{static_cast<uint8_t>(0x40 | number >> 3),
                              static_cast<uint8_t>(0xb8 | (number & 7))};
  PutLittleEndian(code, 2, value);
  return code;
}
// mov r64, imm64.
constexpr std::array<uint8_t, 10> MoveNumber64(Register to, uint64_t value) {
  const auto number = static_cast<uint8_t>(to);
  std::array<uint8_t, 10> code{static_cast<uint8_t>(0x48 | number >> 3),
                               static_cast<uint8_t>(0xb8 | (number & 7))};
  PutLittleEndian(code, 2, value);
  return code;
}

inline constexpr size_t kLongestNop = 9;
// Row n - 1 holds the nop of n bytes that the SDM recommends.
inline constexpr std::array<std::array<uint8_t, kLongestNop>, kLongestNop> kNopBytes = {{
    {0x90},
    {0x66, 0x90},
    {0x0f, 0x1f, 0x00},
    {0x0f, 0x1f, 0x40, 0x00},
    {0x0f, 0x1f, 0x44, 0x00, 0x00},
    {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
    {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
    {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
    {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
}};
// One instruction of `length` bytes, 1 … kLongestNop, that does nothing; empty for other lengths.
// The one of 5 bytes is what compilers and kernels write too.
constexpr std::span<const uint8_t> Nop(size_t length) {
  if (length == 0 || length > kLongestNop) return {};
  return std::span<const uint8_t>(kNopBytes[length - 1]).first(length);
}
// Fills `code` with as few of these as do.
constexpr void FillWithNops(std::span<uint8_t> code) {
  while (!code.empty()) {
    const std::span<const uint8_t> nop = Nop(code.size() < kLongestNop ? code.size() : kLongestNop);
    for (size_t i = 0; i < nop.size(); ++i) code[i] = nop[i];
    code = code.subspan(nop.size());
  }
}

}  // namespace stackreel::x86
