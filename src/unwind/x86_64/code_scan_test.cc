#include "unwind/x86_64/code_scan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stackreel::unwind::x86_64 {
namespace {

// "sp+8", "fp+8 fp@sp+0": where the return address is, and the caller's frame pointer if saved.
std::string Scan(const std::vector<uint8_t>& code, size_t start = 0, unsigned word_size = 8) {
  const auto scanned = ScanToReturn(code, start, word_size);
  if (!scanned) return "none";
  const auto text = [](const StackPlace& place) {
    return std::string(place.from_fp ? "fp+" : "sp+") + std::to_string(place.offset);
  };
  std::string out = text(scanned->return_address);
  if (scanned->saved_fp) out += " fp@" + text(*scanned->saved_fp);
  return out;
}

TEST(CodeScan, PlainReturns) {
  EXPECT_EQ(Scan({0xc3}), "sp+0");
  EXPECT_EQ(Scan({0xf3, 0xc3}), "sp+0");
  EXPECT_EQ(Scan({0xc2, 0x08, 0x00}), "sp+0");
  EXPECT_EQ(Scan({0xf3, 0x0f, 0x1e, 0xfa, 0xc3}), "sp+0");  // endbr64
}

TEST(CodeScan, Epilogues) {
  EXPECT_EQ(Scan({0x48, 0x83, 0xc4, 0x18, 0xc3}), "sp+24");  // add $24,%rsp
  EXPECT_EQ(Scan({0x48, 0x81, 0xc4, 0x00, 0x01, 0, 0, 0xc3}), "sp+256");
  EXPECT_EQ(Scan({0x48, 0x8d, 0x64, 0x24, 0x10, 0xc3}), "sp+16");    // lea 16(%rsp),%rsp
  EXPECT_EQ(Scan({0x5b, 0x41, 0x5c, 0xc3}), "sp+16");                // pop %rbx; pop %r12
  EXPECT_EQ(Scan({0x5b, 0x5d, 0x41, 0x5f, 0xc3}), "sp+24 fp@sp+8");  // pop %rbp second
  EXPECT_EQ(Scan({0xc9, 0xc3}), "fp+8 fp@fp+0");                     // leave
  EXPECT_EQ(Scan({0x48, 0x89, 0xec, 0x5d, 0xc3}), "fp+8 fp@fp+0");   // mov %rbp,%rsp
  EXPECT_EQ(Scan({0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3}), "fp+8 fp@fp+0");
}

TEST(CodeScan, WholeFunctions) {
  // push %rbp; mov %rsp,%rbp; sub $16,%rsp; call; leave; ret
  const std::vector<uint8_t> code = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10,
                                     0xe8, 1,    2,    3,    4,    0xc9, 0xc3};
  EXPECT_EQ(Scan(code, 0), "sp+0");
  EXPECT_EQ(Scan(code, 1), "sp+8 fp@sp+0");
  EXPECT_EQ(Scan(code, 4), "fp+8 fp@fp+0");
  EXPECT_EQ(Scan(code, 13), "fp+8 fp@fp+0");
  EXPECT_EQ(Scan(code, 14), "sp+0");
}

TEST(CodeScan, FramePointerUsedAsAPlainRegister) {
  // mov %rdi,%rbp; pop %rbp; ret, and without the pop: the caller's value is lost.
  EXPECT_EQ(Scan({0x48, 0x89, 0xfd, 0x5d, 0xc3}), "sp+8 fp@sp+0");
  EXPECT_EQ(Scan({0x48, 0x89, 0xfd, 0xc3}), "none");
}

TEST(CodeScan, FramePointerLoadedByMov) {
  // mov 0(%rbp),%rbp; add $40,%rsp; ret
  EXPECT_EQ(Scan({0x48, 0x8b, 0x6d, 0x00, 0x48, 0x83, 0xc4, 0x28, 0xc3}), "sp+40 fp@fp+0");
  // mov 8(%rax),%rbp: from where is not known
  EXPECT_EQ(Scan({0x48, 0x8b, 0x68, 0x08, 0xc3}), "none");
}

TEST(CodeScan, JumpsAndBranches) {
  EXPECT_EQ(Scan({0xff, 0x25, 1, 2, 3, 4}), "sp+0");        // PLT
  EXPECT_EQ(Scan({0xf2, 0xff, 0x25, 1, 2, 3, 4}), "sp+0");  // bnd jmp
  EXPECT_EQ(Scan({0xff, 0xe0}), "sp+0");                    // tail call
  EXPECT_EQ(Scan({0x58, 0xeb, 0x01, 0xf4, 0xc3}), "sp+8");  // jmp over hlt
  EXPECT_EQ(Scan({0x58, 0xe9, 0x01, 0, 0, 0, 0xf4, 0xc3}), "sp+8");
  EXPECT_EQ(Scan({0x59, 0xc3, 0x90, 0xeb, 0xfb}, 3), "sp+8");  // backwards
  EXPECT_EQ(Scan({0xeb, 0xf0}), "none");                       // out of the code
  EXPECT_EQ(Scan({0x74, 0x05, 0xc3}), "sp+0");                 // not taken
  EXPECT_EQ(Scan({0x0f, 0x84, 1, 2, 3, 4, 0xc3}), "sp+0");
  EXPECT_EQ(Scan({0xeb, 0xfe}), "none");  // for ever
}

TEST(CodeScan, OperandsAreReadPast) {
  EXPECT_EQ(Scan({0x48, 0x8b, 0x05, 1, 2, 3, 4, 0xc3}), "sp+0");        // rip-relative
  EXPECT_EQ(Scan({0x48, 0x8b, 0x84, 0xc8, 1, 2, 3, 4, 0xc3}), "sp+0");  // SIB, disp32
  EXPECT_EQ(Scan({0x8b, 0x04, 0x25, 1, 2, 3, 4, 0xc3}), "sp+0");        // absolute
  EXPECT_EQ(Scan({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xc3}), "sp+0");  // movabs
  EXPECT_EQ(Scan({0x66, 0xb8, 1, 2, 0xc3}), "sp+0");
  EXPECT_EQ(Scan({0xf7, 0xc0, 1, 2, 3, 4, 0xf7, 0xd8, 0xc3}), "sp+0");  // test; neg
  EXPECT_EQ(Scan({0x80, 0x3d, 1, 2, 3, 4, 0x00, 0xc3}), "sp+0");        // cmpb $0,x(%rip)
  EXPECT_EQ(Scan({0x0f, 0xb6, 0x04, 0x07, 0x0f, 0xaf, 0xc2, 0xc3}), "sp+0");
  EXPECT_EQ(Scan({0x0f, 0xad, 0xd0, 0x0f, 0xa4, 0xd0, 0x03, 0xc3}), "sp+0");  // shrd; shld $3
  EXPECT_EQ(Scan({0xf3, 0xa5, 0xc3}), "sp+0");                                // rep movs
  EXPECT_EQ(Scan({0x6a, 0x22, 0x58, 0xc3}), "sp+0");                          // push $; pop
  EXPECT_EQ(Scan({0xff, 0x70, 0x08, 0x58, 0x58, 0xc3}), "sp+8");              // push 8(%rax)
}

TEST(CodeScan, ALongWayToTheReturn) {
  std::vector<uint8_t> code(127, 0x90);
  code.push_back(0xc3);
  EXPECT_EQ(Scan(code), "sp+0");
  code.insert(code.begin(), 0x90);
  EXPECT_EQ(Scan(code), "none") << "of 129 instructions";
}

TEST(CodeScan, WhatIsNotFollowedIsNotGuessed) {
  EXPECT_EQ(Scan({}), "none");
  EXPECT_EQ(Scan({0xf4}), "none");
  EXPECT_EQ(Scan({0x0f, 0x0b}), "none");
  EXPECT_EQ(Scan({0x48, 0x83, 0xe4, 0xf0, 0xc3}), "none");  // and $-16,%rsp
  EXPECT_EQ(Scan({0x48, 0x01, 0xc4, 0xc3}), "none");        // add %rax,%rsp
  EXPECT_EQ(Scan({0x48, 0x8b, 0x20, 0xc3}), "none");        // mov (%rax),%rsp
  EXPECT_EQ(Scan({0x5c, 0xc3}), "none");                    // pop %rsp
  EXPECT_EQ(Scan({0x48, 0x81, 0xc4, 0x00}), "none");        // cut short
  EXPECT_EQ(Scan(std::vector<uint8_t>(100, 0x90)), "none");
  // Further than 2 GB: add $0x7fffffff,%rsp, or lea of it, twice; sub $-0x80000000,%rsp.
  const std::vector<uint8_t> add = {0x48, 0x81, 0xc4, 0xff, 0xff, 0xff, 0x7f};
  const std::vector<uint8_t> lea = {0x48, 0x8d, 0xa4, 0x24, 0xff, 0xff, 0xff, 0x7f};
  for (std::vector<uint8_t> code : {add, lea}) {
    code.insert(code.end(), code.begin(), code.end());
    code.push_back(0xc3);
    EXPECT_EQ(Scan(code), "none");
  }
  EXPECT_EQ(Scan({0x48, 0x81, 0xec, 0x00, 0x00, 0x00, 0x80, 0xc3}), "none");
}

TEST(CodeScan, RealignedStackIsLeftByItsFramePointer) {
  // and $-16,%rsp; mov %rbp,%rsp; pop %rbp; ret
  EXPECT_EQ(Scan({0x48, 0x83, 0xe4, 0xf0, 0x48, 0x89, 0xec, 0x5d, 0xc3}), "fp+8 fp@fp+0");
}

TEST(CodeScan, ThirtyTwoBit) {
  EXPECT_EQ(Scan({0x5b, 0x5d, 0xc3}, 0, 4), "sp+8 fp@sp+4");
  EXPECT_EQ(Scan({0x83, 0xc4, 0x0c, 0xc3}, 0, 4), "sp+12");
  EXPECT_EQ(Scan({0x40, 0xc9, 0xc3}, 0, 4), "fp+4 fp@fp+0");  // inc %eax, which is a REX in 64 bit
  EXPECT_EQ(Scan({0x97, 0xc3}, 0, 4), "sp+0");                // xchg %eax,%edi
}

}  // namespace
}  // namespace stackreel::unwind::x86_64
