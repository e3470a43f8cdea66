#include "tracer/value_spec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tracer/value_plan.h"

namespace stackreel::tracer {
namespace {

using tracedata::ValueFormat;
using tracedata::ValueRead;

// "r0 i4 v2 s8 …": where each is (register, vector word, stack), and kind and bytes.
std::string Text(std::string_view text) {
  const auto specs = ParseValueSpecs(text);
  if (!specs) return specs.error().message;
  std::string out;
  for (const ValueSpec& spec : *specs) {
    constexpr char kPlaces[] = "rvsa";
    constexpr char kKinds[] = "iuxpcsfebF{n";
    if (!out.empty()) out += ' ';
    if (spec.is_result) out += '=';
    if (spec.read.how == ValueRead::How::kX87) {
      out += "st0";
    } else {
      out +=
          kPlaces[static_cast<int>(spec.read.first.kind)] + std::to_string(spec.read.first.number);
    }
    out += ':';
    out += kKinds[static_cast<int>(spec.format.kind)];
    if (spec.format.kind != ValueFormat::Kind::kString) out += std::to_string(spec.format.bytes);
  }
  return out;
}

TEST(ValueSpec, ArgumentsAreWhereTheirNumbersSay) {
  EXPECT_EQ(Text("arg1,arg2,arg3,arg4,arg5,arg6,arg7,arg8"),
            "r0:n8 r1:n8 r2:n8 r3:n8 r4:n8 r5:n8 s8:n8 s16:n8");
  EXPECT_EQ(Text("fparg1,fparg2/32,fparg8,fparg9"), "v0:f8 v2:f4 v14:f8 s8:f8");
  EXPECT_EQ(Text("retval,arg1"), "=r0:n8 r0:n8");
}

TEST(ValueSpec, Formats) {
  EXPECT_EQ(Text("arg1/d,arg1/d16,arg1/i,arg1/i8,arg1/u32,arg1/x64"),
            "r0:n8 r0:n2 r0:i8 r0:i1 r0:u4 r0:x8");
  EXPECT_EQ(Text("arg1/c,arg2/s,arg3/S,arg4/p"), "r0:c1 r1:s r2:s r3:F8");
  EXPECT_EQ(Text("retval/f32"), "=v0:f4");
  EXPECT_EQ(Text("retval/f"), "=v0:f8");
  EXPECT_EQ(Text("retval/f80"), "=st0:f16");
  EXPECT_EQ(Text("retval/s"), "=r0:s");
}

TEST(ValueSpec, Places) {
  EXPECT_EQ(Text("arg1%r9,arg9/s%rdi,arg2%stack+3,arg2%stack1"), "r5:n8 r0:s s24:n8 s8:n8");
  EXPECT_EQ(Text("fparg1%xmm7,fparg1/80%stack+1"), "v14:f8 s8:f16");
}

TEST(ValueSpec, WhatIsWrongIsToldWithItsColumn) {
  EXPECT_EQ(Text("arg1,arg2/q8"), "'q8', at column 11 of 'arg1,arg2/q8', is no format");
  EXPECT_EQ(Text("arg1,"), "'', at column 6 of 'arg1,', is no argument and no return value");
  for (const char* bad : {"",
                          "arg",
                          "arg0",
                          "arg65",
                          "arg-1",
                          "args1",
                          "fparg1/i32",
                          "fparg1/80",
                          "arg1/i7",
                          "arg1//",
                          "arg1%rax",
                          "arg1%xmm0",
                          "fparg1%rdi",
                          "fparg1/80%xmm0",
                          "arg1%stack",
                          "arg1%stack+0",
                          "arg1%stack+99999",
                          "arg1/s8",
                          "arg1/f64",
                          "retval%rdi",
                          "retval,retval",
                          "arg1 ,arg2"}) {
    EXPECT_FALSE(ParseValueSpecs(bad)) << bad;
  }
}

TEST(ValueChoice, SpecsAreToldFromModules) {
  const auto with_both = ParseValueChoice("open*@libc@arg1/s", false);
  ASSERT_TRUE(with_both);
  EXPECT_EQ(with_both->pattern.text(), "open*@libc");
  EXPECT_EQ(with_both->specs.size(), 1u);
  EXPECT_FALSE(with_both->by_prototype);
  const auto with_module = ParseValueChoice("open@libc", true);
  ASSERT_TRUE(with_module);
  EXPECT_TRUE(with_module->by_prototype);
  EXPECT_TRUE(with_module->results);
  EXPECT_FALSE(ParseValueChoice("open@ag1/s", false));
  EXPECT_FALSE(ParseValueChoice("@arg1", false));
}

TEST(ValuePlan, TextsShareTheRoomOfAnEvent) {
  std::string many = "arg1/s";
  for (int i = 2; i <= 20; ++i) many += ",arg" + std::to_string(i) + "/s";
  for (const std::string& text : {std::string("arg1/s,arg2"), many}) {
    const auto specs = ParseValueSpecs(text);
    ASSERT_TRUE(specs);
    const auto bytes = EncodeReads(PlanValues(*specs));
    ASSERT_EQ(bytes.size(), sizeof(tracedata::ValueReads) + specs->size() * sizeof(ValueRead));
    uint32_t most = 0;
    for (size_t i = 0; i < specs->size(); ++i) {
      ValueRead read;
      std::memcpy(&read, bytes.data() + sizeof(tracedata::ValueReads) + i * sizeof(read),
                  sizeof(read));
      most += tracedata::MostBytesOf(read);
      if (read.how != ValueRead::How::kTerminated) continue;
      EXPECT_GT(read.limit, 64);
    }
    EXPECT_LE(most, tracedata::kMaxValueBytes);
  }
  EXPECT_TRUE(EncodeReads(ValuePlan()).empty());
}

}  // namespace
}  // namespace stackreel::tracer
