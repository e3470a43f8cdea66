#include "patch/simulated_programs.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace stackreel::patch {
namespace {

// Where things are. f() is at kF; its stub and its instructions out of line are kStub, kCopy.
constexpr uint16_t kMain = 0x4000;
constexpr uint16_t kHandler = 0x4010;
constexpr uint16_t kPaddingOfF = 0x403b;
constexpr uint16_t kF = 0x4040;
constexpr uint16_t kG = 0x4060;
constexpr uint16_t kStub = 0x4080;
constexpr uint16_t kCopy = 0x4098;
constexpr uint16_t kStubOfG = 0x40b0;
constexpr uint16_t kCopyOfG = 0x40c8;
constexpr uint16_t kMcount = 0x40f0;

// A call or jump with a 32-bit displacement.
std::string Branch(uint8_t opcode, uint16_t from, uint16_t to) {
  const auto displacement = static_cast<uint32_t>(to - (from + 5));
  return fmt::format("{:02x} {:02x} {:02x} {:02x} {:02x}", opcode, displacement & 0xff,
                     displacement >> 8 & 0xff, displacement >> 16 & 0xff, displacement >> 24);
}

struct Shape {
  SiteKind kind;
  uint16_t stub = kStub;
  uint16_t copy = kCopy;
  uint8_t before = 0;
  bool calls_stub = false;
  std::vector<std::pair<uint8_t, uint8_t>> map = {};
};

Site SiteOf(uint16_t begin, size_t length, const Shape& shape) {
  Site site;
  site.kind = shape.kind;
  site.before = shape.before;
  site.address = Avma(uint64_t{begin} + shape.before);
  site.original.length = static_cast<uint8_t>(length);
  if (shape.calls_stub) site.patched = SiteBytes(Hex("e8"));
  site.stub = Avma(shape.stub);
  site.out_of_line = Avma(shape.copy);
  for (const auto& [from, to] : shape.map) CHECK(site.map.Add({from, to}));
  return site;
}

// `site` are instructions that are switched, `rest` those behind; `copied` what stands out of line.
using Instructions = std::vector<std::string>;
void AddFunction(SimProgram& program, uint16_t at, Instructions site, Instructions rest,
                 Instructions copied, const Shape& shape) {
  const uint16_t end = program.Code(at, site);
  program.Code(end, rest);
  if (copied.size() != 0) {
    const uint16_t behind = program.Code(shape.copy, copied);
    program.Code(behind, {Branch(0xe9, behind, end)});
  }
  const uint16_t goes_on = copied.size() != 0 ? shape.copy : end;
  const uint16_t jump = static_cast<uint16_t>(shape.stub + 2);
  const std::string back = shape.calls_stub ? "c3" : Branch(0xe9, jump, goes_on);
  Shape placed = shape;
  placed.copy = goes_on;
  program.AddSite(SiteOf(at, static_cast<size_t>(end - at), placed), {back});
}

void AddSleds(SimProgram& program) {
  // Nobody runs the rest of a sled while it is the original's.
  const std::string nops = "66 0f 1f 84 00 00 02 00 00";
  const std::string longer = "2e 66 0f 1f 84 00 00 02 00 00";
  const uint16_t behind = program.Code(kF, {"eb 09", nops});
  const uint16_t exit = program.Code(behind, {"b8 01 00 00 00"});
  program.Code(exit, {"c3", longer});
  program.AddSite(SiteOf(kF, kSledLength, {.kind = SiteKind::kSled}),
                  {Branch(0xe9, kStub + 2, behind)});
  program.AddSite(SiteOf(exit, kSledLength, {.kind = SiteKind::kSled, .stub = kStubOfG}), {"c3"});
}

void AddF(SimProgram& program, std::string_view name) {
  const Instructions body = {"b8 01 00 00 00", "c3"};
  const Instructions pop_body = {"b9 01 00 00 00", "5d", "c3"};
  const Shape nop = {.kind = SiteKind::kNop};
  const Shape prologue = {.kind = SiteKind::kJump};
  if (name == "nop") return AddFunction(program, kF, {"0f 1f 44 00 00"}, body, {}, nop);
  if (name == "nop-call") {
    Shape call = nop;
    call.calls_stub = true;
    return AddFunction(program, kF, {"0f 1f 44 00 00"}, body, {}, call);
  }
  if (name == "nops") {
    Shape several = {.kind = SiteKind::kNops};
    several.map = {{0, 0}, {1, 1}, {3, 3}, {5, 5}};
    return AddFunction(program, kF, {"90", "66 90", "66 90"}, body, {"90", "66 90", "66 90"},
                       several);
  }
  if (name == "call") {
    program.Code(kMcount, {"c3"});
    const std::string here = Branch(0xe8, kF, kMcount);
    const std::string there = Branch(0xe8, kCopy, kMcount);
    return AddFunction(program, kF, {here}, body, {there}, {.kind = SiteKind::kCall});
  }
  if (name == "relocated") {
    // What is out of line is longer.
    Shape shape = prologue;
    shape.map = {{0, 0}, {1, 1}, {3, 4}, {8, 9}};
    return AddFunction(program, kF, {"55", "66 90", "b8 07 00 00 00"}, pop_body,
                       {"55", "0f 1f 00", "b8 07 00 00 00"}, shape);
  }
  if (name == "syscall") {
    Shape shape = prologue;
    shape.map = {{0, 0}, {2, 2}, {3, 3}, {5, 5}};
    return AddFunction(program, kF, {"0f 05", "55", "0f 05"}, pop_body, {"0f 05", "55", "0f 05"},
                       shape);
  }
  if (name == "padding" || name == "padding-2") {
    program.Code(kPaddingOfF, {"cc", "cc", "cc", "cc", "cc"});
    const bool two = name == "padding-2";
    Shape shape = {.kind = SiteKind::kShortJump, .before = kBranchLength};
    const uint16_t end = two ? program.Code(kF, {"55", "5d"}) : program.Code(kF, {"31 c0"});
    program.Code(end, {"c3"});
    const uint16_t behind =
        two ? program.Code(kCopy, {"55", "5d"}) : program.Code(kCopy, {"31 c0"});
    program.Code(behind, {Branch(0xe9, behind, end)});
    if (two) shape.map = {{0, 0}, {1, 1}, {2, 2}};
    return program.AddSite(SiteOf(kPaddingOfF, static_cast<size_t>(end - kPaddingOfF), shape),
                           {Branch(0xe9, kStub + 2, kCopy)});
  }
  if (name == "xray") return AddSleds(program);
  if (name == "trap") {
    return AddFunction(program, kF, {"c3"}, {}, {"c3"}, {.kind = SiteKind::kTrap});
  }
  Shape shape = prologue;
  shape.map = {{0, 0}, {1, 1}, {4, 4}, {8, 8}};
  AddFunction(program, kF, {"55", "48 89 e5", "48 83 ec 10"}, {"5d", "c3"},
              {"55", "48 89 e5", "48 83 ec 10"}, shape);
}

}  // namespace

SimProgram MakeSimProgram(std::string_view name, SimThreads threads) {
  SimProgram program;
  const std::string call = Branch(0xe8, kMain, kF);
  if (name == "own-trap") {
    program.Code(kMain, {call, "cc", "eb f8"});
  } else if (name == "two") {
    program.Code(kMain, {call, Branch(0xe8, kMain + 5, kG), "eb f4"});
  } else {
    program.Code(kMain, {call, "eb f9"});
  }
  program.Code(kHandler, {Branch(0xe8, kHandler, kF), fmt::format("{:02x}", kSimSignalReturn)});
  AddF(program, name);
  if (name == "two") {
    AddFunction(program, kG, {"0f 1f 44 00 00"}, {"c3"}, {},
                {.kind = SiteKind::kNop, .stub = kStubOfG, .copy = kCopyOfG});
  }
  for (int i = 0; i < threads.plain; ++i) program.AddThread(kMain);
  for (int i = 0; i < threads.interrupted; ++i) program.AddThread(kMain, kHandler);
  program.Finish();
  return program;
}

}  // namespace stackreel::patch
