#include "x86/value_places.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stackreel::x86 {
namespace {

PassedValue Scalar(uint32_t size, FieldClass of = FieldClass::kInteger) {
  return {.size = size, .alignment = size, .fields = {{0, size, of}}};
}
const PassedValue kInt = Scalar(4), kDouble = Scalar(8, FieldClass::kSse),
                  kLongDouble = Scalar(16, FieldClass::kX87), kWide = Scalar(16), kVoid = {};
PassedValue Struct(uint32_t size, std::vector<ValueField> fields, uint32_t alignment = 8) {
  return {.size = size, .alignment = alignment, .fields = std::move(fields)};
}

std::string Text(const ValuePlaces& places) {
  std::string out = places.by_reference ? "&" : "";
  for (const Place& place : places.eightbytes) {
    constexpr char kKinds[] = "-ivsx";
    if (place.kind == PlaceKind::kNowhere) continue;
    out += kKinds[static_cast<int>(place.kind)] + std::to_string(place.number);
  }
  return out.empty() ? "-" : out;
}
std::string Text(const std::vector<PassedValue>& arguments, const PassedValue& result = kVoid) {
  const CallPlaces places = PlacesOf(arguments, result);
  std::string out;
  for (const ValuePlaces& argument : places.arguments) out += Text(argument) + " ";
  return out + "= " + Text(places.result);
}

TEST(ValuePlaces, RegistersOfEachClassAreCountedByThemselves) {
  EXPECT_EQ(Text({kInt, kDouble, kInt, kDouble}, kInt), "i0 v0 i1 v1 = i0");
  EXPECT_EQ(Text(std::vector(8, kInt), kDouble), "i0 i1 i2 i3 i4 i5 s8 s16 = v0");
  EXPECT_EQ(Text(std::vector(9, kDouble)), "v0 v1 v2 v3 v4 v5 v6 v7 s8 = -");
}

TEST(ValuePlaces, LongDoublesAreOnTheStackAlignedAndReturnedInX87) {
  EXPECT_EQ(Text({kInt, kLongDouble, kInt}, kLongDouble), "i0 s8 i1 = x0");
  std::vector<PassedValue> arguments(7, kInt);
  arguments.push_back(kLongDouble);
  arguments.push_back(kInt);
  EXPECT_EQ(Text(arguments), "i0 i1 i2 i3 i4 i5 s8 s24 s40 = -");
}

TEST(ValuePlaces, StructsGoWhereTheirWordsDo) {
  const PassedValue mixed = Struct(16, {{0, 4}, {8, 8, FieldClass::kSse}});
  const PassedValue floats =
      Struct(12, {{0, 4, FieldClass::kSse}, {4, 4, FieldClass::kSse}, {8, 4, FieldClass::kSse}}, 4);
  const PassedValue merged = Struct(8, {{0, 4, FieldClass::kSse}, {4, 4}}, 4);
  EXPECT_EQ(Text({mixed, floats, merged, kInt}, mixed), "i0v0 v1v2 i1 i2 = i0v0");
  EXPECT_EQ(Text({}, floats), "= v0v1");
  EXPECT_EQ(Text({}, kWide), "= i0i1");
  // All or nothing; what is left serves the next.
  EXPECT_EQ(Text({kInt, kInt, kInt, kInt, kInt, kWide, kInt}), "i0 i1 i2 i3 i4 s8 i5 = -");
}

TEST(ValuePlaces, MemoryIsForWhatIsLargeOrNotAligned) {
  const PassedValue big = Struct(40, {});
  const PassedValue packed = Struct(9, {{0, 1}, {1, 8}}, 1);
  EXPECT_EQ(Text({big, packed, kInt}), "s8 s48 i0 = -");
  // Where the result goes is handed in.
  EXPECT_EQ(Text({kInt}, big), "i1 = &i0");
}

TEST(ValuePlaces, WhatMustNotBeCopiedIsPassedByItsAddress) {
  PassedValue string = Struct(8, {{0, 8}});
  string.by_reference = true;
  EXPECT_EQ(Text({kInt, string, kInt}, string), "i1 &i2 i3 = &i0");
  std::vector<PassedValue> arguments(6, kInt);
  arguments.push_back(string);
  EXPECT_EQ(Text(arguments), "i0 i1 i2 i3 i4 i5 &s8 = -");
}

TEST(ValuePlaces, EmptyClassesAreNotPassedAndVectorsTakeOneRegister) {
  const PassedValue empty = Struct(1, {}, 1);
  const PassedValue vector = {.size = 32, .alignment = 32, .is_vector = true, .fields = {}};
  EXPECT_EQ(Text({empty, kInt, vector, kDouble}, vector), "- i0 v0 v1 = v0");
  // The first place on the stack is aligned for it.
  std::vector<PassedValue> arguments(8, kDouble);
  arguments.push_back(vector);
  arguments.push_back(kDouble);
  arguments.push_back(vector);
  EXPECT_EQ(Text(arguments), "v0 v1 v2 v3 v4 v5 v6 v7 s8 s40 s72 = -");
}

TEST(ValuePlaces, AComplexLongDoubleComesBackInX87) {
  const PassedValue complex = {.size = 32,
                               .alignment = 16,
                               .fields = {{0, 16, FieldClass::kX87}, {16, 16, FieldClass::kX87}}};
  EXPECT_EQ(Text({complex, kInt}, complex), "s8 i0 = x0");
}

}  // namespace
}  // namespace stackreel::x86
