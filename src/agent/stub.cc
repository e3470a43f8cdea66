#include "agent/stub.h"

#include <cstring>
#include <optional>
#include <span>

#include "tracedata/agent_memory.h"
#include "x86/emit.h"

namespace stackreel::agent {
namespace {

using tracedata::Setter;

// Where in a room's header the address of a routine stands.
enum class Routine : uint8_t {
  kEnter,
  kEnterFramed,
  kLeave,
  kBeforeUnwind,
  kAfterCatch,
  kLibraries,
  kBeforeEnd,
  kBeforeExec,
  kBeforeSetting,
};
constexpr size_t kRoutines = 9;
static_assert(kRoutines * sizeof(uint64_t) <= kRoomHeaderSize);

// lea rsp, [rsp + displacement]: adds without changing the flags.
constexpr std::array<uint8_t, 5> MoveStackPointer(int8_t displacement) {
  return {0x48, 0x8d, 0x64, 0x24, static_cast<uint8_t>(displacement)};
}
constexpr uint8_t kRet = 0xc3;

constexpr size_t kPushLength = 5;
constexpr size_t kIndirectCallLength = 6;
constexpr size_t kMoveLength = 5;
// back … ret.
constexpr size_t kReturnLength = kMoveLength + kIndirectCallLength + 1;
constexpr size_t kEnterLength = kPushLength + kIndirectCallLength;
constexpr size_t kCallBack = kEnterLength + kMoveLength + x86::kJumpLength;
constexpr size_t kCallHead = kCallBack + kReturnLength + kMoveLength;
constexpr size_t kFramedBack = kEnterLength + x86::kShortJumpLength;
constexpr size_t kFramedHead = kFramedBack + kReturnLength + kMoveLength;
// Of kInnerCall: outer, inner.
constexpr size_t kOuter = kMoveLength + x86::kJumpLength;
constexpr size_t kInner = kOuter + kMoveLength + 1;
constexpr size_t kInnerHead = kInner + kCallHead;
static_assert(kInnerHead + x86::kMaxCopyLength + x86::kAbsoluteJumpLength <= kMaxStubLength);

// Puts instructions one behind the other, and remembers if one cannot reach what it refers to.
class StubWriter {
 public:
  StubWriter(Avma room, Avma stub) : room_(room), stub_(stub) {}

  void Put(std::span<const uint8_t> code) { bytes_.insert(bytes_.end(), code.begin(), code.end()); }
  void PutBranch(std::optional<std::array<uint8_t, x86::kJumpLength>> branch) {
    if (branch) Put(*branch);
    reaches_ = reaches_ && branch;
  }
  // call qword [rip + displacement]
  void PutCall(Routine routine) {
    const auto call =
        x86::WithDisplacement(std::array<uint8_t, kIndirectCallLength>{0xff, 0x15}, at(),
                              room_ + static_cast<uint64_t>(routine) * sizeof(uint64_t));
    if (call) Put(*call);
    reaches_ = reaches_ && call;
  }
  void PutReturn() {
    Put(MoveStackPointer(-8));
    PutCall(Routine::kLeave);
    PutRet();
  }
  void PutRet() { bytes_.push_back(kRet); }
  [[nodiscard]] Avma at() const { return stub_ + bytes_.size(); }
  [[nodiscard]] bool reaches() const { return reaches_; }
  std::vector<uint8_t> Take() { return std::move(bytes_); }

 private:
  Avma room_;
  Avma stub_;
  bool reaches_ = true;
  std::vector<uint8_t> bytes_;
};

void PutSetter(StubWriter& writer, Setter setter) {
  writer.Put(x86::PushNumber(static_cast<int32_t>(setter)));
  writer.PutCall(Routine::kBeforeSetting);
  writer.Put(MoveStackPointer(8));
}

void PutCallHead(StubWriter& writer, const patch::Site& site, Avma body) {
  writer.Put(x86::PushNumber(static_cast<int32_t>(site.function)));
  writer.PutCall(Routine::kEnter);
  writer.Put(MoveStackPointer(16));
  writer.PutBranch(x86::Call(writer.at(), body));
  writer.PutReturn();
  writer.Put(MoveStackPointer(8));
}

void PutHead(StubWriter& writer, StubKind kind, const patch::Site& site) {
  switch (kind) {
    case StubKind::kCall:
      PutCallHead(writer, site, site.stub + kCallHead);
      return;
    case StubKind::kInnerCall:
      writer.Put(MoveStackPointer(-8));
      writer.PutBranch(x86::Call(writer.at(), site.stub + kInner));
      writer.Put(MoveStackPointer(8));
      writer.PutRet();
      PutCallHead(writer, site, site.stub + kInnerHead);
      return;
    case StubKind::kFramedCall: {
      writer.Put(x86::PushNumber(static_cast<int32_t>(site.function)));
      writer.PutCall(Routine::kEnterFramed);
      const auto pass = x86::ShortJump(writer.at(), site.stub + kFramedBack + kReturnLength);
      if (pass) writer.Put(*pass);
      writer.PutReturn();
      writer.Put(MoveStackPointer(8));
      return;
    }
    case StubKind::kBeforeUnwind:
      writer.PutCall(Routine::kBeforeUnwind);
      return;
    case StubKind::kAfterCatch:
      writer.PutCall(Routine::kAfterCatch);
      return;
    case StubKind::kLibraries:
      writer.PutCall(Routine::kLibraries);
      return;
    case StubKind::kBeforeEnd:
      writer.PutCall(Routine::kBeforeEnd);
      return;
    case StubKind::kBeforeExec:
      writer.PutCall(Routine::kBeforeExec);
      return;
    case StubKind::kBeforePrctl:
      PutSetter(writer, Setter::kPrctl);
      return;
    case StubKind::kBeforeSyscall:
      PutSetter(writer, Setter::kSyscall);
      return;
    case StubKind::kBeforeSigaction:
      PutSetter(writer, Setter::kSigaction);
      return;
    case StubKind::kBeforeSigmask:
      PutSetter(writer, Setter::kSigmask);
      return;
  }
}

// Where the function goes on behind what was copied.
Avma BehindCopy(const patch::Site& site) {
  if (site.map.size() != 0) return site.address + site.map.original_length();
  return site.end();
}

// The rows of a stub's head; those of an unwinder are in the order of the code in PutHead.
std::vector<unwind::DetourRow> HeadRows(size_t head, uint64_t code) {
  using Kind = unwind::DetourRow::Kind;
  constexpr int8_t kPushed = 8;   // the function's number
  constexpr int8_t kPopped = -8;  // the return address
  const auto entering = [code](Kind kind, uint8_t offset, int8_t sp, bool after_call = false) {
    return unwind::DetourRow{.kind = kind,
                             .after_call = after_call,
                             .offset = offset,
                             .sp = sp,
                             .code = kind == Kind::kCode ? code : 0};
  };
  const auto leaving = [](uint8_t offset, int8_t sp, bool after_call = false) {
    return unwind::DetourRow{
        .kind = Kind::kPlace, .after_call = after_call, .offset = offset, .sp = sp, .code = 0};
  };
  if (head != kCallHead && head != kFramedHead && head != kInnerHead) {
    return {entering(Kind::kCode, 0, 0)};
  }
  const bool framed = head == kFramedHead;
  const Kind kind = framed ? Kind::kCode : Kind::kPlace;
  std::vector<unwind::DetourRow> rows;
  size_t begin = 0;
  if (head == kInnerHead) {
    constexpr int8_t kMoved = 8;
    begin = kInner;
    rows = {leaving(0, 0), leaving(kMoveLength, kMoved), leaving(kOuter + kMoveLength, 0)};
  }
  const size_t back = begin + (framed ? kFramedBack : kCallBack);
  rows.push_back(entering(kind, static_cast<uint8_t>(begin), 0));
  rows.push_back(entering(kind, static_cast<uint8_t>(begin + kPushLength), kPushed));
  rows.push_back(entering(kind, static_cast<uint8_t>(begin + kEnterLength), kPushed,
                          /*after_call=*/true));
  // The call of the body: its return address is to be pushed where the true one stood.
  if (!framed)
    rows.push_back(leaving(static_cast<uint8_t>(begin + kEnterLength + kMoveLength), kPopped));
  rows.push_back(leaving(static_cast<uint8_t>(back), kPopped));
  rows.push_back(leaving(static_cast<uint8_t>(back + kMoveLength), 0));
  rows.push_back(leaving(static_cast<uint8_t>(back + kReturnLength - 1), 0, /*after_call=*/true));
  rows.push_back(entering(kind, static_cast<uint8_t>(back + kReturnLength), kPushed));
  return rows;
}

}  // namespace

unwind::Detour DetourOf(const patch::Site& site) {
  const size_t head = site.out_of_line - site.stub;
  unwind::Detour detour;
  detour.begin = site.stub.value;
  detour.end = site.out_of_line.value + site.map.relocated_length() + x86::kAbsoluteJumpLength;
  detour.function = site.address.value;
  detour.number = site.function;
  if (head == kCallHead) detour.return_point = ReturnPoint(StubKind::kCall, site.stub).value;
  if (head == kInnerHead) {
    detour.return_point = ReturnPoint(StubKind::kInnerCall, site.stub).value;
  }
  if (head == kFramedHead) {
    detour.return_point = ReturnPoint(StubKind::kFramedCall, site.stub).value;
  }
  detour.rows = HeadRows(head, site.address.value);
  const auto copied = [&](size_t to, Avma code) {
    detour.rows.push_back({.kind = unwind::DetourRow::Kind::kCode,
                           .after_call = false,
                           .offset = static_cast<uint8_t>(head + to),
                           .sp = 0,
                           .code = code.value});
  };
  if (site.map.size() == 0) copied(0, site.end());
  for (size_t i = 0; i < site.map.size(); ++i) {
    copied(site.map.entry(i).to, site.address + site.map.entry(i).from);
  }
  // The agent's routine returns to where the copy begins.
  const bool records = detour.return_point != 0;
  if (!records) detour.rows[1].after_call = true;
  return detour;
}

std::array<uint8_t, kRoomHeaderSize> MakeRoomHeader(Avma agent, Entering entering) {
  std::array<uint8_t, kRoomHeaderSize> bytes = {};
  tracedata::AgentCodeHeader header;
  const ByteView code = AgentCode();
  if (code.size() < sizeof(header)) return bytes;
  std::memcpy(&header, code.data(), sizeof(header));
  const bool acting = entering == Entering::kActing;
  const std::array<uint32_t, kRoutines> offsets = {
      acting ? header.enter_acting : header.enter,
      acting ? header.enter_framed_acting : header.enter_framed,
      header.leave,
      header.before_unwind,
      header.after_catch,
      header.libraries,
      header.before_end,
      header.before_exec,
      header.before_setting};
  for (size_t i = 0; i < kRoutines; ++i) {
    x86::PutLittleEndian(bytes, i * sizeof(uint64_t), agent.value + offsets[i]);
  }
  return bytes;
}

size_t StubHeadLength(StubKind kind) {
  switch (kind) {
    case StubKind::kCall:
      return kCallHead;
    case StubKind::kFramedCall:
      return kFramedHead;
    case StubKind::kInnerCall:
      return kInnerHead;
    case StubKind::kBeforeUnwind:
    case StubKind::kAfterCatch:
    case StubKind::kLibraries:
    case StubKind::kBeforeEnd:
    case StubKind::kBeforeExec:
      break;
    case StubKind::kBeforePrctl:
    case StubKind::kBeforeSyscall:
    case StubKind::kBeforeSigaction:
    case StubKind::kBeforeSigmask:
      return kEnterLength + kMoveLength;
  }
  return kIndirectCallLength;
}

std::expected<std::vector<uint8_t>, patch::Refusal> MakeStub(StubKind kind, Avma room,
                                                             const patch::Site& site, ByteView copy,
                                                             bool falls_through) {
  StubWriter writer(room, site.stub);
  PutHead(writer, kind, site);
  writer.Put(copy);
  if (falls_through) writer.PutBranch(x86::Jump(writer.at(), BehindCopy(site)));
  if (!writer.reaches()) return std::unexpected(patch::Refusal::kOutOfReach);
  return writer.Take();
}

Avma ReturnPoint(StubKind kind, Avma stub) {
  switch (kind) {
    case StubKind::kCall:
      return stub + kCallBack;
    case StubKind::kFramedCall:
      return stub + kFramedBack;
    case StubKind::kInnerCall:
      return stub + kInner + kCallBack;
    case StubKind::kBeforeUnwind:
    case StubKind::kAfterCatch:
    case StubKind::kLibraries:
    case StubKind::kBeforeEnd:
    case StubKind::kBeforeExec:
    case StubKind::kBeforePrctl:
    case StubKind::kBeforeSyscall:
    case StubKind::kBeforeSigaction:
    case StubKind::kBeforeSigmask:
      break;
  }
  return Avma(0);
}

}  // namespace stackreel::agent
