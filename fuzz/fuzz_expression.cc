// DWARF expressions of any bytes, over registers and memory that are the input's too.
#include <cstdint>

#include "base/byte_reader.h"
#include "dwarf/expression.h"

namespace {

class AnyContext : public stackreel::dwarf::ExpressionContext {
 public:
  explicit AnyContext(stackreel::ByteView bytes) : bytes_(bytes) {}
  std::optional<uint64_t> Register(unsigned reg) const override {
    if (reg > 16) return std::nullopt;
    return Memory(stackreel::Avma(reg), 1);
  }
  std::optional<uint64_t> Memory(stackreel::Avma address, unsigned size) const override {
    stackreel::ByteReader reader(bytes_);
    reader.Seek(address.value % (bytes_.size() + 1));
    uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) value |= uint64_t{reader.U8()} << (8 * i);
    if (!reader.ok()) return std::nullopt;
    return value;
  }

 private:
  stackreel::ByteView bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const stackreel::ByteView bytes(data + 1, size - 1);
  stackreel::dwarf::ExpressionInput input;
  input.bytes = bytes;
  input.address_size = (data[0] & 1) != 0 ? 4 : 8;
  input.endian = (data[0] & 2) != 0 ? stackreel::Endian::kBig : stackreel::Endian::kLittle;
  if ((data[0] & 4) != 0) input.initial = 0x7ffc00001000;
  input.bias = 0x7f5500000000;
  (void)stackreel::dwarf::Evaluate(input, AnyContext(bytes));
  return 0;
}
