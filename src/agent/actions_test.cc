// Filters and triggers: which calls of a small program are recorded.
#ifdef __x86_64__
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "agent/called_function.h"
#include "agent/in_process_agent.h"

namespace stackreel::agent {
namespace {

using tracedata::ActionSet;
using tracedata::FunctionActions;

// The program is its text: "a(b(c)d)" is a, which calls b, which calls c, and then d.
const char* rest = nullptr;

void CallNext();
template <int kFunction>
OUT_OF_LINE void Node() {
  if (*rest != '(') return;
  for (++rest; *rest != ')';) CallNext();
  ++rest;
}

constexpr int kNodes = 8;
using Nodes = std::array<void (*)(), kNodes>;
template <int... kFunctions>
constexpr Nodes MakeNodes(std::integer_sequence<int, kFunctions...>) {
  return {Node<kFunctions>...};
}
constexpr Nodes kNode = MakeNodes(std::make_integer_sequence<int, kNodes>());
Nodes nodes = kNode;
void CallNext() { nodes[*rest++ - 'a'](); }

constexpr uint32_t IdOf(char name) { return static_cast<uint32_t>(name - 'a' + 1); }

// What g does where a test wants more of it than to be called.
std::function<void()> change;

class ActionsTest : public testing::Test {
 protected:
  ActionsTest() {
    for (size_t i = 0; i < kNodes; ++i) {
      nodes[i] = agent_.Call(static_cast<uint32_t>(i) + 1, kNode[i]);
    }
  }
  ~ActionsTest() override { nodes = kNode; }

  // "a b": the functions whose calls were recorded while it ran, in the order of their ends.
  std::string Run(const char* program) {
    const size_t before = agent_.Events(CurrentTid()).size();
    rest = program;
    while (*rest != 0) CallNext();
    const auto events = agent_.Events(CurrentTid());
    std::string text;
    for (size_t i = before; i < events.size(); ++i) {
      EXPECT_EQ(events[i].kind, tracedata::EventKind::kCall);
      if (!text.empty()) text += ' ';
      text += static_cast<char>('a' + events[i].function - 1);
    }
    EXPECT_EQ(agent_.OpenCalls(), 0u);
    return text;
  }

  ActionSet set_;
  FunctionActions& On(char name) { return set_.functions[IdOf(name)].actions; }
  InProcessAgent agent_;
};

TEST_F(ActionsTest, NoFunctionActs) {
  EXPECT_EQ(Run("a(b(c)d)"), "c b d a");
  On('h').flags = tracedata::kEnds;
  agent_.Act(set_);
  EXPECT_EQ(Run("a(b(c)d)"), "c b d a");
}

TEST_F(ActionsTest, RecordingBeginsAtAFunction) {
  On('b').flags = tracedata::kBegins;
  set_.root_state = tracedata::kOutside;
  agent_.Act(set_);
  EXPECT_EQ(Run("a(b(c(b)d)c)d(c)"), "b c d b");
}

TEST_F(ActionsTest, RecordingEndsAtAFunction) {
  On('b').flags = tracedata::kEnds;
  agent_.Act(set_);
  EXPECT_EQ(Run("a(b(c(a)d)c)b(c)d(c)"), "c a c d");
}

// What ends it counts more than what begins it.
TEST_F(ActionsTest, BeginningsAndEnds) {
  On('b').flags = tracedata::kBegins;
  On('c').flags = tracedata::kEnds;
  set_.root_state = tracedata::kOutside;
  agent_.Act(set_);
  EXPECT_EQ(Run("a(b(d(c(b(d))d)))c(b(d))"), "d d b");
}

TEST_F(ActionsTest, Levels) {
  set_.root_state = tracedata::kLevels - 2;
  On('h').flags = tracedata::kEnds;
  agent_.Act(set_);
  EXPECT_EQ(Run("a(b(c(d)e)f)c(d(e))"), "b f a d c");
}

// They are counted anew where recording begins, and by who sets them.
TEST_F(ActionsTest, LevelsOfFunctions) {
  set_.root_state = tracedata::kOutside | (tracedata::kLevels - 2);
  On('b').flags = tracedata::kBegins;
  On('e') = {.flags = tracedata::kSetsLevels, .levels = 3};
  On('f') = {.flags = tracedata::kSetsLevels, .levels = 0};
  agent_.Act(set_);
  EXPECT_EQ(Run("a(b(c(d)))"), "c b");
  EXPECT_EQ(Run("a(b(b(b(c(d)))))"), "c b b b");
  EXPECT_EQ(Run("b(c(e(c(d(d))))d)"), "d c e c d b");
  EXPECT_EQ(Run("b(f(c(b))d)"), "b d b");
}

TEST_F(ActionsTest, PatchedForWhatItDoes) {
  On('b').flags = tracedata::kBegins | tracedata::kUnrecorded;
  set_.root_state = tracedata::kOutside | (tracedata::kLevels - 1);
  agent_.Act(set_);
  EXPECT_EQ(Run("a(b(c(d)))"), "c");
}

TEST_F(ActionsTest, TracingIsSwitched) {
  On('b').flags = tracedata::kTraceOn;
  On('c').flags = tracedata::kTraceOff;
  agent_.Act(set_);
  EXPECT_EQ(Run("a(d)c(d)d(a(b(d)d)d)"), "d a d b d d");
}

// Who was recorded when it began is so to its end.
TEST_F(ActionsTest, TracingIsSwitchedOffWithin) {
  On('c').flags = tracedata::kTraceOff;
  agent_.Act(set_);
  EXPECT_EQ(Run("a(d(c(d))d)d"), "d a");
}

TEST_F(ActionsTest, OnlyTheWayToAFunction) {
  On('c').flags = tracedata::kLeadsHere;
  set_.root_state = tracedata::kHolding;
  agent_.Act(set_);
  EXPECT_EQ(Run("a(b(d)b(d(e)c(e))d(d))d(e)"), "c b a");
  EXPECT_EQ(Run("a(b(c(d(c)))b)"), "c d c b a");
}

TEST_F(ActionsTest, LeastDurations) {
  set_.durations = {uint64_t{1} << 40, 0};
  On('b') = {.flags = tracedata::kSetsDuration, .duration = 1};
  On('c') = {.flags = tracedata::kSetsDuration, .duration = 2};
  On('d') = {.flags = tracedata::kAlways};
  agent_.Act(set_);
  // b is too short, but what it calls that sets another is not, so it is kept as its caller.
  EXPECT_EQ(Run("a(b(e)e)"), "e a");
  EXPECT_EQ(Run("a(b(e(c(e)))b)"), "e c e b a");
  EXPECT_EQ(Run("a(b(e(d(e)))b)"), "d e b a");
}

// Calls that were held back over more chunks and a longer time than a word of ticks counts are told
// of in the end, with the time at which they began.
TEST_F(ActionsTest, HeldBackOverSeveralChunks) {
  On('c').flags = tracedata::kLeadsHere;
  set_.root_state = tracedata::kHolding;
  agent_.Act(set_);
  std::string many(70'000, 'c');
  const std::string program = "a(" + many + "b(d" + "c))";
  const size_t before = agent_.Events(CurrentTid()).size();
  rest = program.c_str();
  CallNext();
  const auto events = agent_.Events(CurrentTid());
  // a is told of at the end of the first chunk, b when it ends.
  size_t ends_of_a = 0, calls_of_b = 0, calls_of_c = 0, others = 0;
  for (size_t i = before; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.kind == tracedata::EventKind::kBase || event.kind == tracedata::EventKind::kEntry) {
      continue;
    }
    ends_of_a += event.function == IdOf('a') ? 1 : 0;
    calls_of_b += event.function == IdOf('b') ? 1 : 0;
    calls_of_c += event.function == IdOf('c') ? 1 : 0;
    others += event.function == IdOf('d') ? 1 : 0;
  }
  EXPECT_EQ(ends_of_a, 1u);
  EXPECT_EQ(calls_of_b, 1u);
  EXPECT_EQ(calls_of_c, many.size() + 1);
  EXPECT_EQ(others, 0u);
}

// One that begins before what the chunk counts its times from gets a base of its own.
TEST_F(ActionsTest, HeldBackSinceBeforeTheBase) {
  nodes[6] = [] { change(); };
  On('c').flags = tracedata::kLeadsHere;
  set_.root_state = tracedata::kHolding;
  agent_.Act(set_);
  Run("c");
  const uint64_t start = __builtin_ia32_rdtsc();
  // As if so long a time had gone by that a new base was written.
  change = [this] { agent_.OwnSlot()->base = __builtin_ia32_rdtsc(); };
  rest = "a(b(gc))";
  CallNext();
  const auto events = agent_.Events(CurrentTid());
  uint64_t entry_of_a = 0;
  for (const Event& event : events) {
    if (event.kind == tracedata::EventKind::kEntry && event.function == IdOf('a')) {
      entry_of_a = event.time;
    }
  }
  EXPECT_GE(entry_of_a, start);
  EXPECT_LE(entry_of_a - start, uint64_t{1} << 32);
  EXPECT_EQ(agent_.OpenCalls(), 0u);
}

TEST_F(ActionsTest, ChangedWhileCallsAreOpen) {
  nodes[6] = [] { change(); };
  On('b').flags = tracedata::kBegins;
  On('c').flags = tracedata::kEnds;
  set_.root_state = tracedata::kOutside;
  change = [this] { agent_.Act(set_); };
  EXPECT_EQ(Run("a(b(d(gdc(d))d)d)"), "d d d b a");
  change = [this] { agent_.Act({}); };
  EXPECT_EQ(Run("a(d(gd)b)"), "d b");
  EXPECT_EQ(Run("a(d)"), "d a");
}

}  // namespace
}  // namespace stackreel::agent
#endif
