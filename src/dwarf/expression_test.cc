#include "dwarf/expression.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <vector>

namespace stackreel::dwarf {
namespace {

class TestContext : public ExpressionContext {
 public:
  std::optional<uint64_t> Register(unsigned reg) const override {
    const auto it = registers.find(reg);
    if (it == registers.end()) return std::nullopt;
    return it->second;
  }
  std::optional<uint64_t> Memory(Avma address, unsigned size) const override {
    const auto it = memory.find(address.value);
    if (it == memory.end()) return std::nullopt;
    return size == 8 ? it->second : it->second & ((uint64_t{1} << (8 * size)) - 1);
  }
  std::map<unsigned, uint64_t> registers = {{7, 0x7000}, {6, 0x6000}, {16, 0x40100b}, {33, 5}};
  std::map<uint64_t, uint64_t> memory = {{0x7008, 0x1122334455667788}, {0x5ff8, 0x9000}};
};

Result<uint64_t> Try(std::vector<uint8_t> bytes, std::optional<uint64_t> initial = std::nullopt,
                     unsigned address_size = 8) {
  static const TestContext kContext;
  static std::vector<uint8_t> kept;
  kept = std::move(bytes);
  return Evaluate({.bytes = kept,
                   .endian = Endian::kLittle,
                   .address_size = address_size,
                   .initial = initial,
                   .bias = 0x10000},
                  kContext);
}
uint64_t Value(std::vector<uint8_t> bytes, std::optional<uint64_t> initial = std::nullopt,
               unsigned address_size = 8) {
  const auto value = Try(std::move(bytes), initial, address_size);
  EXPECT_TRUE(value) << value.error().message;
  return value.value_or(0xdead);
}

TEST(Expression, Constants) {
  EXPECT_EQ(Value({0x30}), 0u);
  EXPECT_EQ(Value({0x4f}), 31u);
  EXPECT_EQ(Value({0x08, 0xff}), 0xffu);
  EXPECT_EQ(Value({0x09, 0xff}), UINT64_MAX);
  EXPECT_EQ(Value({0x0a, 0x34, 0x12}), 0x1234u);
  EXPECT_EQ(Value({0x0b, 0xfe, 0xff}), UINT64_MAX - 1);
  EXPECT_EQ(Value({0x0c, 1, 0, 0, 0x80}), 0x80000001u);
  EXPECT_EQ(Value({0x0d, 1, 0, 0, 0x80}), 0xffffffff80000001u);
  EXPECT_EQ(Value({0x0e, 1, 2, 3, 4, 5, 6, 7, 8}), 0x0807060504030201u);
  EXPECT_EQ(Value({0x10, 0x80, 0x01}), 128u);
  EXPECT_EQ(Value({0x11, 0x7f}), UINT64_MAX);
}

TEST(Expression, AddressesTakeTheBias) {
  EXPECT_EQ(Value({0x03, 0x00, 0x20, 0, 0, 0, 0, 0, 0}), 0x12000u);
}

TEST(Expression, RegistersAndMemory) {
  EXPECT_EQ(Value({0x77, 0x08}), 0x7008u);
  EXPECT_EQ(Value({0x77, 0x08, 0x06}), 0x1122334455667788u);
  EXPECT_EQ(Value({0x77, 0x08, 0x94, 0x04}), 0x55667788u);
  EXPECT_EQ(Value({0x77, 0x08, 0x94, 0x01}), 0x88u);
  EXPECT_EQ(Value({0x76, 0x78, 0x06, 0x23, 0x10}), 0x9010u);  // breg6 -8; deref; plus_uconst
  EXPECT_EQ(Value({0x92, 0x21, 0x02}), 7u);                   // bregx
  EXPECT_EQ(Value({0x57}), 0x7000u);                          // reg7, by value
  EXPECT_EQ(Value({0x90, 0x06}), 0x6000u);
}

TEST(Expression, InitialValueIsPushedFirst) {
  EXPECT_EQ(Value({0x23, 0x08}, 0x100), 0x108u);
  EXPECT_EQ(Value({}, 0x100), 0x100u);
}

TEST(Expression, Arrangement) {
  EXPECT_EQ(Value({0x31, 0x12, 0x22}), 2u);                      // dup
  EXPECT_EQ(Value({0x31, 0x32, 0x13}), 1u);                      // drop
  EXPECT_EQ(Value({0x31, 0x32, 0x14, 0x1c}), 1u);                // over: 1 2 1 → 2 - 1
  EXPECT_EQ(Value({0x31, 0x32, 0x33, 0x15, 0x02}), 1u);          // pick 2
  EXPECT_EQ(Value({0x31, 0x35, 0x16, 0x1c}), 4u);                // swap
  EXPECT_EQ(Value({0x31, 0x32, 0x35, 0x17, 0x1c}), UINT64_MAX);  // rot: 5 1 2 → 1 - 2
}

TEST(Expression, Arithmetic) {
  EXPECT_EQ(Value({0x11, 0x7b, 0x19}), 5u);                    // abs(-5)
  EXPECT_EQ(Value({0x3f, 0x33, 0x1a}), 3u);                    // and
  EXPECT_EQ(Value({0x11, 0x78, 0x32, 0x1b}), UINT64_MAX - 3);  // -8 / 2, signed
  EXPECT_EQ(Value({0x39, 0x35, 0x1c}), 4u);
  EXPECT_EQ(Value({0x39, 0x35, 0x1d}), 4u);
  EXPECT_EQ(Value({0x39, 0x35, 0x1e}), 45u);
  EXPECT_EQ(Value({0x31, 0x1f}), UINT64_MAX);
  EXPECT_EQ(Value({0x30, 0x20}), UINT64_MAX);
  EXPECT_EQ(Value({0x34, 0x33, 0x21}), 7u);
  EXPECT_EQ(Value({0x34, 0x33, 0x22}), 7u);
  EXPECT_EQ(Value({0x33, 0x34, 0x24}), 48u);
  EXPECT_EQ(Value({0x11, 0x78, 0x31, 0x25}), 0x7ffffffffffffffcu);
  EXPECT_EQ(Value({0x11, 0x78, 0x31, 0x26}), UINT64_MAX - 3);
  EXPECT_EQ(Value({0x35, 0x33, 0x27}), 6u);
  EXPECT_EQ(Value({0x31, 0x08, 64, 0x24}), 0u);  // shl by the width
  EXPECT_EQ(Value({0x11, 0x7f, 0x08, 200, 0x26}), UINT64_MAX);
}

TEST(Expression, LeastValueByMinusOneDoesNotTrap) {
  EXPECT_EQ(Value({0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x11, 0x7f, 0x1b}), uint64_t{1} << 63);
}

TEST(Expression, ComparisonsAreSigned) {
  const std::vector<std::pair<uint8_t, std::array<uint64_t, 3>>> operations = {
      // operation → for (-1, 1), (1, 1), (1, -1)
      {0x29, {0, 1, 0}}, {0x2a, {0, 1, 1}}, {0x2b, {0, 0, 1}},
      {0x2c, {1, 1, 0}}, {0x2d, {1, 0, 0}}, {0x2e, {1, 0, 1}}};
  for (const auto& [op, want] : operations) {
    EXPECT_EQ(Value({0x11, 0x7f, 0x31, op}), want[0]) << int{op};
    EXPECT_EQ(Value({0x31, 0x31, op}), want[1]) << int{op};
    EXPECT_EQ(Value({0x31, 0x11, 0x7f, op}), want[2]) << int{op};
  }
}

TEST(Expression, PltPattern) {
  // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus; pc = …0b
  EXPECT_EQ(Value({0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}), 0x7010u);
}

TEST(Expression, Jumps) {
  EXPECT_EQ(Value({0x2f, 0x01, 0x00, 0x31, 0x32}), 2u);              // skip over lit1
  EXPECT_EQ(Value({0x35, 0x31, 0x28, 0x01, 0x00, 0x36, 0x37}), 7u);  // taken: 5 7
  EXPECT_EQ(Value({0x35, 0x30, 0x28, 0x01, 0x00, 0x36}), 6u);        // not taken
  EXPECT_FALSE(Try({0x31, 0x2f, 0x00, 0x70}));                       // past the end
  EXPECT_FALSE(Try({0x31, 0x2f, 0xf0, 0xff}));                       // before the start
}

TEST(Expression, EndlessLoopsEnd) {
  const auto value = Try({0x31, 0x2f, 0xfd, 0xff});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().kind, ErrorKind::kDamaged);
}

TEST(Expression, StackIsBounded) {
  std::vector<uint8_t> bytes(64, 0x31);
  EXPECT_TRUE(Try(bytes));
  bytes.push_back(0x31);
  EXPECT_FALSE(Try(bytes));
}

TEST(Expression, Failures) {
  EXPECT_FALSE(Try({}));      // no value
  EXPECT_FALSE(Try({0x22}));  // too few values
  EXPECT_FALSE(Try({0x31, 0x22}));
  EXPECT_FALSE(Try({0x31, 0x15, 0x05}));  // pick below the stack
  EXPECT_FALSE(Try({0x31, 0x30, 0x1b}));  // division by zero
  EXPECT_FALSE(Try({0x31, 0x30, 0x1d}));
  EXPECT_FALSE(Try({0xe0}));                    // unknown
  EXPECT_FALSE(Try({0x0e, 1, 2}));              // cut short
  EXPECT_FALSE(Try({0x70, 0x00}));              // register 0 is not known
  EXPECT_FALSE(Try({0x31, 0x06}));              // memory at 1 is not
  EXPECT_FALSE(Try({0x77, 0x08, 0x94, 0x03}));  // no such size
  EXPECT_FALSE(Try({0x31}, std::nullopt, 3));   // nor address size
}

TEST(Expression, ThirtyTwoBits) {
  EXPECT_EQ(Value({0x11, 0x7f}, std::nullopt, 4), 0xffffffffu);
  EXPECT_EQ(Value({0x11, 0x7f, 0x31, 0x2d}, std::nullopt, 4), 1u);  // -1 < 1
  EXPECT_EQ(Value({0x0c, 0, 0, 0, 0x80, 0x31, 0x26}, std::nullopt, 4), 0xc0000000u);
  EXPECT_EQ(Value({0x77, 0x08, 0x06}, std::nullopt, 4), 0x55667788u);
}

}  // namespace
}  // namespace stackreel::dwarf
