// Two kinds of address are two types, and so are a return address and an instruction pointer.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace stackreel {

// A 64-bit address that does not mix with addresses of another kind.
template <typename Tag>
struct Address {
  uint64_t value = 0;

  constexpr Address() = default;
  constexpr explicit Address(uint64_t v) : value(v) {}
  friend constexpr auto operator<=>(Address, Address) = default;
  friend constexpr Address operator+(Address a, uint64_t n) { return Address(a.value + n); }
  friend constexpr Address operator-(Address a, uint64_t n) { return Address(a.value - n); }
  friend constexpr uint64_t operator-(Address a, Address b) { return a.value - b.value; }
};

using Avma = Address<struct AvmaTag>;              // actual virtual address, in a process
using Svma = Address<struct SvmaTag>;              // stated virtual address, in an ELF file
using FileOffset = Address<struct FileOffsetTag>;  // offset in an ELF file

// Where a frame's code is. An instruction pointer points at the instruction that runs (or was
// interrupted); a return address points behind the call, and may lie in the next function, so it
// is looked up at address - 1.
enum class CodeAddressKind : uint8_t { kInstructionPointer, kReturnAddress };

struct CodeAddress {
  Avma avma;
  CodeAddressKind kind = CodeAddressKind::kInstructionPointer;

  [[nodiscard]] constexpr Avma LookupAddress() const {
    return kind == CodeAddressKind::kReturnAddress ? avma - 1 : avma;
  }
  friend constexpr bool operator==(CodeAddress, CodeAddress) = default;
};

}  // namespace stackreel

template <typename Tag>
struct std::hash<stackreel::Address<Tag>> {
  size_t operator()(stackreel::Address<Tag> address) const noexcept {
    return std::hash<uint64_t>{}(address.value);
  }
};
