#include "dwarf/form.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "dwarf/constants.h"
#include "dwarf/dwarf_writer.h"

namespace stackreel::dwarf {
namespace {

FormValue Read(uint16_t form, const std::vector<uint8_t>& bytes, const Encoding& encoding) {
  ByteReader reader(bytes);
  FormValue value;
  EXPECT_TRUE(ReadForm(reader, form, -7, encoding, &value));
  EXPECT_TRUE(reader.AtEnd());
  return value;
}

TEST(FormTest, ReadsNumbersOfEverySize) {
  EXPECT_EQ(Read(kFormData1, {0xfe}, kDwarf5).number, 0xfeU);
  EXPECT_EQ(Read(kFormData2, {1, 2}, kDwarf5).number, 0x0201U);
  EXPECT_EQ(Read(kFormStrx3, {1, 2, 3}, kDwarf5).number, 0x030201U);
  EXPECT_EQ(Read(kFormSdata, {0x7f}, kDwarf5).number, UINT64_MAX);
  EXPECT_EQ(Read(kFormImplicitConst, {}, kDwarf5).number, uint64_t(-7));
  const std::vector<uint8_t> ab = {'a', 'b', 0};
  const FormValue text = Read(kFormString, ab, kDwarf5);
  EXPECT_EQ(text.form_class, FormClass::kText);
  EXPECT_EQ(text.text, "ab");
}

TEST(FormTest, SizesFollowTheUnit) {
  const Encoding dwarf2_32 = {.version = 2, .address_size = 4};
  EXPECT_EQ(FixedFormSize(kFormRefAddr, dwarf2_32), 4);
  EXPECT_EQ(FixedFormSize(kFormRefAddr, {.version = 2, .address_size = 8}), 8);
  EXPECT_EQ(FixedFormSize(kFormRefAddr, kDwarf5), 4);
  EXPECT_EQ(FixedFormSize(kFormSecOffset, {.version = 5, .address_size = 8, .dwarf64 = true}), 8);
  EXPECT_EQ(FixedFormSize(kFormUdata, kDwarf5), -1);
}

TEST(FormTest, IndirectTakesOneStepOnly) {
  EXPECT_EQ(Read(kFormIndirect, {kFormData1, 9}, kDwarf5).number, 9U);
  const std::vector<uint8_t> circle = {kFormIndirect, kFormIndirect, kFormData1, 9};
  ByteReader reader(circle);
  FormValue value;
  EXPECT_FALSE(ReadForm(reader, kFormIndirect, 0, kDwarf5, &value));
}

TEST(FormTest, UnknownFormsAndShortBytesFail) {
  for (const uint16_t form : {uint16_t{0}, uint16_t{0x50}, uint16_t{kFormData8}}) {
    const std::vector<uint8_t> bytes(7, 1);
    ByteReader read(bytes);
    ByteReader skip(bytes);
    FormValue value;
    EXPECT_FALSE(ReadForm(read, form, 0, kDwarf5, &value)) << form;
    EXPECT_FALSE(SkipForm(skip, form, kDwarf5)) << form;
  }
}

// Reading and skipping must agree on every form, or all that follows is misread.
TEST(FormTest, SkippingGoesAsFarAsReading) {
  std::mt19937 random(1);
  for (const bool dwarf64 : {false, true}) {
    for (const uint16_t version : {2, 3, 4, 5}) {
      const Encoding encoding = {.version = version, .address_size = 4, .dwarf64 = dwarf64};
      for (uint32_t form = 0; form < 0x2000; form = form == 0x40 ? 0x1f00 : form + 1) {
        std::array<uint8_t, 512> bytes;
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() & 0x3f);
        ByteReader read(bytes);
        ByteReader skip(bytes);
        FormValue value;
        const auto narrow = static_cast<uint16_t>(form);
        const bool good = ReadForm(read, narrow, 0, encoding, &value);
        ASSERT_EQ(SkipForm(skip, narrow, encoding), good) << form;
        if (good) {
          ASSERT_EQ(read.offset(), skip.offset()) << form;
          const int size = FixedFormSize(narrow, encoding);
          if (size >= 0) {
            ASSERT_EQ(read.offset(), static_cast<size_t>(size)) << form;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace stackreel::dwarf
