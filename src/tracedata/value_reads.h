// Which arguments and return values the agent records with a call, and how it reads them: what
// stands in a function's list of an ActionTable (action_table.h). Part of the memory that tracer
// and agent share, with its version.
#pragma once

#include <cstdint>

namespace stackreel::tracedata {

// Where a word stands when a function is entered, or returns.
struct WordPlace {
  enum class Kind : uint8_t {
    kInteger,       // number: on the way in rdi, rsi, rdx, rcx, r8, r9; on the way out rax, rdx
    kVector,        // number: twice that of the xmm register; one more: its upper half
    kStack,         // number: bytes above the return address
    kStackAddress,  // the same, but not the word that is there: its address
  };
  Kind kind = Kind::kInteger;
  uint8_t reserved[3] = {};
  uint32_t number = 0;
  friend bool operator==(const WordPlace&, const WordPlace&) = default;
};
static_assert(sizeof(WordPlace) == 8);

// One value.
struct ValueRead {
  enum class How : uint8_t {
    kNumber,        // `bytes` of it, up to 8 from `first` and the rest from `second`
    kX87,           // st(0), in 16 bytes
    kTerminated,    // a text that begins at the address `first` and ends with a NUL
    kCounted,       // the same, of `second` bytes
    kObject,        // an object at the address `first`: address and length of its text at offsets
    kLengthBefore,  // the same; the length stands 24 bytes before the text
    kLibcxx,        // the same, as libc++ has it
  };
  How how = How::kNumber;
  uint8_t bytes = 8;                            // of a number, or the object
  uint16_t limit = 0;                           // bytes of a text, at most
  uint16_t text_offset = 0, length_offset = 0;  // kObject, kLengthBefore
  WordPlace first, second;
  friend bool operator==(const ValueRead&, const ValueRead&) = default;
};
static_assert(sizeof(ValueRead) == 24);
inline constexpr uint32_t kMaxObjectBytes = 32;

// Followed by those of the arguments, then those of the return value.
struct ValueReads {
  uint16_t arguments = 0, results = 0;
  uint16_t vectors = 0;  // 1: some are in vector registers
  uint16_t texts = 0;    // 1: some are texts
};
static_assert(sizeof(ValueReads) == 8);

// Of one event; the reads of a function must not be able to come to more.
inline constexpr uint32_t kMaxValueBytes = 2048;
// What a read takes at most.
constexpr uint32_t MostBytesOf(const ValueRead& read) {
  switch (read.how) {
    case ValueRead::How::kNumber:
      return read.bytes;
    case ValueRead::How::kX87:
      return 16;
    default:
      // Its word, and the text; or the pointer where there is none.
      return 2 + (read.limit < 8 ? 8 : read.limit);
  }
}

}  // namespace stackreel::tracedata
