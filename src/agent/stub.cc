#include "agent/stub.h"

#include <cstring>
#include <optional>
#include <span>

#include "tracedata/agent_memory.h"
#include "x86/emit.h"

namespace stackreel::agent {
namespace {

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
};
constexpr size_t kRoutines = 8;
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
static_assert(kCallHead + x86::kMaxCopyLength + x86::kAbsoluteJumpLength <= kMaxStubLength);

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
    bytes_.push_back(kRet);
  }
  [[nodiscard]] Avma at() const { return stub_ + bytes_.size(); }
  [[nodiscard]] bool reaches() const { return reaches_; }
  std::vector<uint8_t> Take() { return std::move(bytes_); }

 private:
  Avma room_;
  Avma stub_;
  bool reaches_ = true;
  std::vector<uint8_t> bytes_;
};

void PutHead(StubWriter& writer, StubKind kind, const patch::Site& site) {
  switch (kind) {
    case StubKind::kCall:
      writer.Put(x86::PushNumber(static_cast<int32_t>(site.function)));
      writer.PutCall(Routine::kEnter);
      writer.Put(MoveStackPointer(16));
      writer.PutBranch(x86::Call(writer.at(), site.stub + kCallHead));
      writer.PutReturn();
      writer.Put(MoveStackPointer(8));
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
  }
}

// Where the function goes on behind what was copied.
Avma BehindCopy(const patch::Site& site) {
  if (site.map.size() != 0) return site.address + site.map.original_length();
  return site.end();
}

}  // namespace

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
      header.before_exec};
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
    case StubKind::kBeforeUnwind:
    case StubKind::kAfterCatch:
    case StubKind::kLibraries:
    case StubKind::kBeforeEnd:
    case StubKind::kBeforeExec:
      break;
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
    case StubKind::kBeforeUnwind:
    case StubKind::kAfterCatch:
    case StubKind::kLibraries:
    case StubKind::kBeforeEnd:
    case StubKind::kBeforeExec:
      break;
  }
  return Avma(0);
}

}  // namespace stackreel::agent
