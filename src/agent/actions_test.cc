// Filters and triggers: which calls of a small program are recorded.
#ifdef __x86_64__
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "agent/in_process_agent.h"

namespace stackreel::agent {
namespace {

using tracedata::ActionSet;
using tracedata::FunctionActions;

#define OUT_OF_LINE __attribute__((noinline, noclone))

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

// g changes what is in force.
std::function<void()> change;

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
