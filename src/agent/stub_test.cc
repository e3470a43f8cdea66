#include "agent/stub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "patch/fake_site.h"
#include "patch/hex.h"
#include "tracedata/agent_memory.h"

namespace stackreel::agent {
namespace {

using patch::Hex;

constexpr Avma kRoom(0x200000);

// push rbp; mov rbp,rsp; sub rsp,16 at 0x210000 - 0x100000, function 0x1234.
patch::Site MakeSite(StubKind kind) {
  patch::Site site = patch::FakeJump(0x110000);
  site.function = 0x1234;
  site.stub = kRoom + 0x100;
  site.out_of_line = site.stub + StubHeadLength(kind);
  return site;
}
std::vector<uint8_t> MustMake(StubKind kind, bool falls_through = true) {
  const patch::Site site = MakeSite(kind);
  const auto stub = MakeStub(kind, kRoom, site, site.original.view(), falls_through);
  EXPECT_TRUE(stub);
  return stub.value_or(std::vector<uint8_t>());
}

TEST(StubTest, Call) {
  EXPECT_EQ(MustMake(StubKind::kCall), Hex("68 34 12 00 00 "           // push 0x1234
                                           "ff 15 f5 fe ff ff "        // call [room]
                                           "48 8d 64 24 10 "           // lea rsp, [rsp+16]
                                           "e8 11 00 00 00 "           // call body
                                           "48 8d 64 24 f8 "           // back: lea rsp, [rsp-8]
                                           "ff 15 f0 fe ff ff "        // call [room+16]
                                           "c3 "                       // ret
                                           "48 8d 64 24 08 "           // pass: lea rsp, [rsp+8]
                                           "55 48 89 e5 48 83 ec 10 "  // body
                                           "e9 d5 fe f0 ff"));         // jmp site+8
  EXPECT_EQ(StubHeadLength(StubKind::kCall), 38u);
  EXPECT_EQ(ReturnPoint(StubKind::kCall, Avma(0x1000)), Avma(0x1000 + 21));
}

TEST(StubTest, InnerCall) {
  EXPECT_EQ(MustMake(StubKind::kInnerCall), Hex("48 8d 64 24 f8 "     // lea rsp, [rsp-8]
                                                "e8 06 00 00 00 "     // call inner
                                                "48 8d 64 24 08 "     // outer: lea rsp, [rsp+8]
                                                "c3 "                 // ret
                                                "68 34 12 00 00 "     // inner: push 0x1234
                                                "ff 15 e5 fe ff ff "  // call [room]
                                                "48 8d 64 24 10 "     // lea rsp, [rsp+16]
                                                "e8 11 00 00 00 "     // call body
                                                "48 8d 64 24 f8 "     // back: lea rsp, [rsp-8]
                                                "ff 15 e0 fe ff ff "  // call [room+16]
                                                "c3 "                 // ret
                                                "48 8d 64 24 08 "     // pass: lea rsp, [rsp+8]
                                                "55 48 89 e5 48 83 ec 10 "  // body
                                                "e9 c5 fe f0 ff"));         // jmp site+8
  EXPECT_EQ(StubHeadLength(StubKind::kInnerCall), 54u);
  EXPECT_EQ(ReturnPoint(StubKind::kInnerCall, Avma(0x1000)), Avma(0x1000 + 37));
  // The return address stands 8 bytes higher while what is inside runs, and behind that.
  const unwind::Detour detour = DetourOf(MakeSite(StubKind::kInnerCall));
  for (const auto& [offset, sp] : {std::pair(0, 0), {5, 8}, {10, 8}, {15, 0}, {16, 0}, {21, 8}}) {
    EXPECT_EQ(detour.RowAt(detour.begin + static_cast<uint64_t>(offset))->sp, sp) << offset;
  }
}

// What unwinders are told of a stub is what its code does.
TEST(StubTest, DetoursFollowTheCode) {
  using unwind::DetourRow;
  for (const StubKind kind : {StubKind::kCall, StubKind::kFramedCall, StubKind::kInnerCall,
                              StubKind::kBeforeUnwind, StubKind::kBeforeExec}) {
    patch::Site site = MakeSite(kind);
    const std::vector<uint8_t> code = MustMake(kind);
    const unwind::Detour detour = DetourOf(site);
    EXPECT_EQ(detour.begin, site.stub.value);
    EXPECT_GE(detour.end, site.stub.value + code.size());
    EXPECT_EQ(detour.function, site.address.value);
    EXPECT_EQ(detour.return_point, ReturnPoint(kind, site.stub).value);
    EXPECT_EQ(detour.number, site.function);
    // Behind each call by way of the room, and nowhere else.
    for (size_t at = 6; at < code.size(); ++at) {
      const bool is_behind = code[at - 6] == 0xff && code[at - 5] == 0x15;
      const DetourRow* row = detour.RowAt(site.stub.value + at);
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(row->after_call && row->offset == at, is_behind) << at;
    }
    // Each row begins with an instruction; the copy's are the function's.
    const size_t body = StubHeadLength(kind);
    for (size_t i = 0; i < site.map.size(); ++i) {
      const DetourRow* row = detour.RowAt(site.stub.value + body + site.map.entry(i).to);
      EXPECT_EQ(row->kind, DetourRow::Kind::kCode);
      EXPECT_EQ(row->code, site.address.value + site.map.entry(i).from);
      EXPECT_EQ(row->sp, 0);
    }
    if (detour.return_point == 0) continue;
    const DetourRow* back = detour.RowAt(detour.return_point);
    EXPECT_EQ(back->kind, DetourRow::Kind::kPlace);
    EXPECT_EQ(back->sp, -8);
  }
}

TEST(StubTest, FramedCall) {
  EXPECT_EQ(MustMake(StubKind::kFramedCall), Hex("68 34 12 00 00 "     // push 0x1234
                                                 "ff 15 fd fe ff ff "  // call [room+8]
                                                 "eb 0c "              // jmp pass
                                                 "48 8d 64 24 f8 "     // back: lea rsp, [rsp-8]
                                                 "ff 15 f8 fe ff ff "  // call [room+16]
                                                 "c3 "                 // ret
                                                 "48 8d 64 24 08 "     // pass: lea rsp, [rsp+8]
                                                 "55 48 89 e5 48 83 ec 10 "  // body
                                                 "e9 dd fe f0 ff"));         // jmp site+8
  EXPECT_EQ(StubHeadLength(StubKind::kFramedCall), 30u);
  EXPECT_EQ(ReturnPoint(StubKind::kFramedCall, Avma(0x1000)), Avma(0x1000 + 13));
}

TEST(StubTest, AroundUnwinding) {
  EXPECT_EQ(MustMake(StubKind::kBeforeUnwind), Hex("ff 15 12 ff ff ff "  // call [room+24]
                                                   "55 48 89 e5 48 83 ec 10 "
                                                   "e9 f5 fe f0 ff"));
  EXPECT_EQ(MustMake(StubKind::kAfterCatch), Hex("ff 15 1a ff ff ff "  // call [room+32]
                                                 "55 48 89 e5 48 83 ec 10 "
                                                 "e9 f5 fe f0 ff"));
  EXPECT_EQ(ReturnPoint(StubKind::kBeforeUnwind, Avma(0x1000)), Avma(0));
}

TEST(StubTest, EndsWithTheCopyWhereThatLeaves) {
  EXPECT_EQ(MustMake(StubKind::kCall, false).size(), MustMake(StubKind::kCall, true).size() - 5);
}

// Of one instruction there is no map: the function goes on behind the site.
TEST(StubTest, NopSiteGoesOnBehindIt) {
  patch::Site site = patch::FakeNop(0x110000);
  site.stub = kRoom + 0x100;
  site.out_of_line = site.stub + StubHeadLength(StubKind::kCall);
  const auto stub = MakeStub(StubKind::kCall, kRoom, site, {}, true);
  ASSERT_TRUE(stub);
  EXPECT_EQ(std::vector<uint8_t>(stub->end() - 5, stub->end()), Hex("e9 da fe f0 ff"));
}

// What stands before a site with a short jump is padding: the function goes on behind its entry.
TEST(StubTest, ShortJumpGoesOnBehindItsCopy) {
  patch::Site site = patch::FakeShortJump(0x110000);
  site.stub = kRoom + 0x100;
  site.out_of_line = site.stub + StubHeadLength(StubKind::kCall);
  const auto stub = MakeStub(StubKind::kCall, kRoom, site, Hex("55 5d"), true);
  ASSERT_TRUE(stub);
  EXPECT_EQ(std::vector<uint8_t>(stub->end() - 5, stub->end()), Hex("e9 d5 fe f0 ff"));
}

TEST(StubTest, OutOfReach) {
  patch::Site site = MakeSite(StubKind::kCall);
  site.address = Avma(0x110000 + (uint64_t{1} << 32));
  EXPECT_EQ(MakeStub(StubKind::kCall, kRoom, site, site.original.view(), true),
            std::unexpected(patch::Refusal::kOutOfReach));
  site = MakeSite(StubKind::kCall);
  EXPECT_EQ(
      MakeStub(StubKind::kCall, kRoom + (uint64_t{1} << 32), site, site.original.view(), true),
      std::unexpected(patch::Refusal::kOutOfReach));
}

#ifdef __x86_64__
TEST(StubTest, RoomBeginsWithTheRoutines) {
  tracedata::AgentCodeHeader header;
  ASSERT_GT(AgentCode().size(), sizeof(header));
  std::memcpy(&header, AgentCode().data(), sizeof(header));
  EXPECT_EQ(header.magic, tracedata::kAgentMagic);
  EXPECT_EQ(header.version, tracedata::kAgentVersion);
  const auto room = MakeRoomHeader(Avma(0x7000'0000'0000));
  const auto at = [&](size_t i) {
    return LoadUnaligned<uint64_t>(room.data() + 8 * i, Endian::kLittle) - 0x7000'0000'0000;
  };
  EXPECT_EQ(at(0), header.enter);
  EXPECT_EQ(at(1), header.enter_framed);
  EXPECT_EQ(at(2), header.leave);
  EXPECT_EQ(at(3), header.before_unwind);
  EXPECT_EQ(at(4), header.after_catch);
  EXPECT_EQ(at(5), header.libraries);
  EXPECT_EQ(at(6), header.before_end);
  EXPECT_EQ(at(7), header.before_exec);
  EXPECT_EQ(at(8), header.before_setting);
  for (const uint32_t offset : {header.trap, header.trap_return, header.leave}) {
    EXPECT_GT(offset, sizeof(header));
    EXPECT_LT(offset, AgentCode().size());
  }
}
#endif

}  // namespace
}  // namespace stackreel::agent
