// Arguments and return values. What a pointer of the program leads to may be unmapped at any
// moment, by another thread: it is the kernel that reads it, except on the stack on which this
// runs.
#include "agent/inside/agent.h"
#include "agent/inside/system_call.h"
#include "tracedata/trace_facts.h"

namespace stackreel::agent {
namespace {

using tracedata::ValueFormat;
using tracedata::ValueRead;
using tracedata::WordPlace;
using How = ValueRead::How;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kWord = sizeof(uint64_t);
// A text's word.
constexpr uint32_t kHead = sizeof(uint16_t);

struct IoVector {
  uint64_t start, size;
};

void CopyBytes(uint8_t* to, uint64_t from, uint64_t size) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(bytes), "+c"(size) : : "memory");
}

// Reads one event's values.
class ValueReader {
 public:
  // `place` is where the return address of the call stands (or stood).
  ValueReader(const SavedRegisters& registers, uint64_t place, bool entering, uint8_t* out)
      : registers_(registers), place_(place), entering_(entering), start_(out), out_(out) {}

  void UseVectors() { ReadVectorRegisters(vectors_); }
  void Read(const ValueRead& read);
  // The same; most values are numbers in a register.
  void ReadQuickly(const ValueRead& read) {
    if (read.how == How::kNumber && read.first.kind == WordPlace::Kind::kInteger &&
        read.bytes <= kWord) {
      PutNumber(IntegerOf(read.first.number), read.bytes);
    } else {
      Read(read);
    }
  }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(out_ - start_); }

 private:
  [[nodiscard]] uint64_t WordOf(const WordPlace& place) const;
  [[nodiscard]] uint64_t IntegerOf(uint32_t number) const;
  [[nodiscard]] bool IsOwnStack(uint64_t address, uint64_t size) const;
  // How many bytes could be read, from the first on.
  uint64_t Copy(uint8_t* to, uint64_t address, uint64_t size) const;
  void PutNumber(uint64_t value, uint64_t bytes);
  void PutUnreadable(uint64_t pointer);
  void PutNull();
  void EndText(uint64_t size, bool goes_on);
  void PutTerminated(uint64_t pointer, uint64_t limit);
  void PutCounted(uint64_t pointer, uint64_t length, uint64_t limit);
  void PutObject(const ValueRead& read, uint64_t address);

  const SavedRegisters& registers_;
  uint64_t place_;
  bool entering_;
  uint8_t* start_;
  uint8_t* out_;
  VectorRegister vectors_[8];
};

uint64_t ValueReader::WordOf(const WordPlace& place) const {
  switch (place.kind) {
    case WordPlace::Kind::kInteger:
      break;
    case WordPlace::Kind::kVector:
      return reinterpret_cast<const uint64_t*>(vectors_)[place.number & 15];
    case WordPlace::Kind::kStack:
      return WordAt(place_ + place.number);
    case WordPlace::Kind::kStackAddress:
      return place_ + place.number;
  }
  return IntegerOf(place.number);
}

inline uint64_t ValueReader::IntegerOf(uint32_t number) const {
  if (!entering_) return number == 0 ? registers_.rax : registers_.rdx;
  if (number == 0) return registers_.rdi;
  if (number == 1) return registers_.rsi;
  if (number == 2) return registers_.rdx;
  if (number == 3) return registers_.rcx;
  return number == 4 ? registers_.r8 : registers_.r9;
}

// From here up to the end of the page that the return address is in, nobody else unmaps it.
bool ValueReader::IsOwnStack(uint64_t address, uint64_t size) const {
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const uint64_t end = (place_ & ~(kPage - 1)) + kPage;
  return here < place_ && address >= here && address < end && size <= end - address;
}

uint64_t ValueReader::Copy(uint8_t* to, uint64_t address, uint64_t size) const {
  if (size == 0) return 0;
  if (IsOwnStack(address, size)) {
    CopyBytes(to, address, size);
    return size;
  }
  if (agent_control.no_text_reads.load(std::memory_order_relaxed) != 0 || !MayCall()) return 0;
  // What cannot be read is left out by pieces, so there is one up to the end of the page.
  const uint64_t in_page = kPage - address % kPage;
  const IoVector local = {AddressOf(to), size};
  const IoVector remote[2] = {{address, size < in_page ? size : in_page},
                              {address + in_page, size < in_page ? 0 : size - in_page}};
  const uint64_t pieces = remote[1].size == 0 ? 1 : 2;
  int64_t got = SystemCall(__NR_process_vm_readv, agent_control.pid, AddressOf(&local), 1,
                           AddressOf(&remote), pieces);
  if (got < 0 && got != kBadAddress) {
    // A vfork child has its parent's memory, but may not look into its parent.
    got = SystemCall(__NR_process_vm_readv, Getpid(), AddressOf(&local), 1, AddressOf(&remote),
                     pieces);
  }
  return got < 0 ? 0 : static_cast<uint64_t>(got);
}

void ValueReader::PutNumber(uint64_t value, uint64_t bytes) {
  // Whole words where there is room: what is behind is not written yet.
  *reinterpret_cast<uint64_t*>(out_) = value;
  out_ += bytes;
}

void ValueReader::PutUnreadable(uint64_t pointer) {
  PutNumber(ValueFormat::kUnreadableText, kHead);
  PutNumber(pointer, kWord);
}
void ValueReader::PutNull() { PutNumber(ValueFormat::kNullText, kHead); }

// The text stands behind its word already.
void ValueReader::EndText(uint64_t size, bool goes_on) {
  *reinterpret_cast<uint16_t*>(out_) =
      static_cast<uint16_t>(size | (goes_on ? ValueFormat::kTextGoesOn : 0));
  out_ += kHead + size;
}

void ValueReader::PutTerminated(uint64_t pointer, uint64_t limit) {
  if (pointer == 0) {
    PutNull();
    return;
  }
  // One byte more, to see whether it ends there.
  const uint64_t got = Copy(out_ + kHead, pointer, limit + 1);
  if (got == 0) {
    PutUnreadable(pointer);
    return;
  }
  const uint8_t* text = out_ + kHead;
  uint64_t size = 0;
  while (size < got && size < limit && text[size] != 0) ++size;
  EndText(size, size == got || text[size] != 0);
}

void ValueReader::PutCounted(uint64_t pointer, uint64_t length, uint64_t limit) {
  const uint64_t size = length < limit ? length : limit;
  const uint64_t got = Copy(out_ + kHead, pointer, size);
  if (got == 0 && size != 0) {
    PutUnreadable(pointer);
  } else {
    EndText(got, got < length);
  }
}

void ValueReader::PutObject(const ValueRead& read, uint64_t address) {
  uint64_t words[tracedata::kMaxObjectBytes / kWord];
  auto* const bytes = reinterpret_cast<uint8_t*>(words);
  const uint64_t size =
      read.bytes < tracedata::kMaxObjectBytes ? read.bytes : tracedata::kMaxObjectBytes;
  if (read.text_offset + kWord > size || read.length_offset + kWord > size ||
      Copy(bytes, address, size) < size) {
    PutUnreadable(address);
    return;
  }
  uint64_t pointer = words[read.text_offset / kWord];
  uint64_t length = words[read.length_offset / kWord];
  if (read.how == How::kLibcxx) {
    // The lowest bit of the first byte tells the two forms apart.
    const bool is_short = (bytes[0] & 1) == 0;
    pointer = is_short ? address + 1 : words[2];
    length = is_short ? bytes[0] / 2u : words[1];
  } else if (read.how == How::kLengthBefore) {
    if (Copy(bytes, pointer - 3 * kWord, kWord) < kWord) {
      PutUnreadable(pointer);
      return;
    }
    length = words[0];
  }
  // Short ones are within the object, which was read.
  if (read.how != How::kLengthBefore && pointer >= address && pointer - address < size &&
      length <= size - (pointer - address) && length <= read.limit) {
    CopyBytes(out_ + kHead, AddressOf(bytes) + (pointer - address), length);
    EndText(length, false);
    return;
  }
  PutCounted(pointer, length, read.limit);
}

void ValueReader::Read(const ValueRead& read) {
  switch (read.how) {
    case How::kNumber:
      PutNumber(WordOf(read.first), read.bytes < kWord ? read.bytes : kWord);
      if (read.bytes > kWord) PutNumber(WordOf(read.second), read.bytes - kWord);
      return;
    case How::kX87: {
      ExtendedFloat value = {0, ValueFormat::kNoFloatExponent};
      (void)ReadExtendedFloat(value);  // where there is none, it stays that
      PutNumber(value.mantissa, kWord);
      PutNumber(value.exponent, kWord);
      return;
    }
    case How::kTerminated:
      PutTerminated(WordOf(read.first), read.limit);
      return;
    case How::kCounted:
      PutCounted(WordOf(read.first), WordOf(read.second), read.limit);
      return;
    case How::kObject:
    case How::kLengthBefore:
    case How::kLibcxx:
      PutObject(read, WordOf(read.first));
      return;
  }
}

}  // namespace

uint32_t ReadValues(const tracedata::ValueReads& reads, const SavedRegisters& registers,
                    uint64_t place, bool entering, uint8_t* out) {
  const auto* read = reinterpret_cast<const ValueRead*>(&reads + 1);
  const ValueRead* end = read + reads.arguments;
  if (!entering) {
    read = end;
    end = read + reads.results;
  }
  ValueReader reader(registers, place, entering, out);
  if (reads.vectors != 0) reader.UseVectors();
  for (; read < end; ++read) reader.ReadQuickly(*read);
  return reader.size();
}

}  // namespace stackreel::agent
