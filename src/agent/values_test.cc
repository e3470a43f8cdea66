// Arguments and return values: what is recorded is what was passed, and no pointer of the program
// can do harm.
#ifdef __x86_64__
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/called_function.h"
#include "agent/in_process_agent.h"
#include "tracedata/trace_facts.h"
#include "tracedata/value_reads.h"

namespace stackreel::agent {
namespace {

using tracedata::EventKind;
using tracedata::ValueFormat;
using tracedata::ValueRead;
using tracedata::WordPlace;
using How = ValueRead::How;

constexpr uint32_t kFunction = 5;
constexpr uint16_t kLimit = 16;

WordPlace Integer(uint32_t number) { return {.kind = WordPlace::Kind::kInteger, .number = number}; }
WordPlace Stack(uint32_t number) { return {.kind = WordPlace::Kind::kStack, .number = number}; }
ValueRead Number(WordPlace place, uint8_t bytes) {
  return {.bytes = bytes, .first = place, .second = {}};
}
ValueRead Vector(uint32_t number, uint8_t bytes) {
  return {.bytes = bytes,
          .first = {.kind = WordPlace::Kind::kVector, .number = 2 * number},
          .second = {.kind = WordPlace::Kind::kVector, .number = 2 * number + 1}};
}
ValueRead Text(How how, WordPlace place) {
  return {
      .how = how, .bytes = 32, .limit = kLimit, .length_offset = 8, .first = place, .second = {}};
}

template <typename T>
void Append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
template <typename... T>
std::string Bytes(T... values) {
  std::string bytes;
  (Append(bytes, values), ...);
  return bytes;
}
std::string Recorded(std::string_view text, bool goes_on = false) {
  return Bytes(static_cast<uint16_t>(text.size() | (goes_on ? ValueFormat::kTextGoesOn : 0))) +
         std::string(text);
}
std::string Unreadable(const volatile void* pointer) {
  return Bytes(ValueFormat::kUnreadableText, InProcessAgent::Address(pointer));
}

class ValuesTest : public testing::Test {
 protected:
  template <typename F>
  F* Record(const std::vector<ValueRead>& arguments, const std::vector<ValueRead>& results,
            F* function) {
    tracedata::ActionSet set;
    set.functions.emplace(kFunction, RecordValues(arguments, results));
    agent_.Act(set);
    return agent_.Call(kFunction, function);
  }
  std::vector<Event> Events() { return agent_.Events(CurrentTid()); }
  std::string LastArguments() {
    const auto events = Events();
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
      if (event->kind == EventKind::kEntry) return event->values;
    }
    return "none";
  }
  std::string LastResult() { return Events().empty() ? "none" : Events().back().values; }
  InProcessAgent agent_;
};

OUT_OF_LINE long Eight(int8_t a, short b, int c, long d, uint32_t e, bool f, long g, int h) {
  __asm__ volatile("");
  return static_cast<long>(uint64_t{0} + a + b + c + d + e + f + g + h);  // which may wrap
}
TEST_F(ValuesTest, IntegersInRegistersAndOnTheStack) {
  const auto eight = Record(
      {Number(Integer(0), 1), Number(Integer(1), 2), Number(Integer(2), 4), Number(Integer(3), 8),
       Number(Integer(4), 4), Number(Integer(5), 1), Number(Stack(8), 8), Number(Stack(16), 4)},
      {Number(Integer(0), 8)}, Eight);
  EXPECT_EQ(eight(-1, -2, -3, -4, 5, true, INT64_MIN, 8), INT64_MIN + 4);
  EXPECT_EQ(InProcessAgent::Text(Events()), "E5 X5");
  EXPECT_EQ(LastArguments(), Bytes(int8_t{-1}, short{-2}, -3, long{-4}, 5u, true, INT64_MIN, 8));
  EXPECT_EQ(LastResult(), Bytes(INT64_MIN + 4));
}

OUT_OF_LINE double Floats(float a, double b, long double c) {
  __asm__ volatile("");
  return a + b + static_cast<double>(c);
}
TEST_F(ValuesTest, FloatingPointNumbers) {
  ValueRead extended = Number(Stack(8), 16);
  extended.second = Stack(16);
  const auto floats = Record({Vector(0, 4), Vector(1, 8), extended}, {Vector(0, 8)}, Floats);
  EXPECT_EQ(floats(1.5F, -2.25, 4.0L), 3.25);
  const std::string arguments = LastArguments();
  ASSERT_EQ(arguments.size(), 28u);
  EXPECT_EQ(arguments.substr(0, 12), Bytes(1.5F, -2.25));
  const long double four = 4;
  EXPECT_EQ(arguments.substr(12, 10), Bytes(four).substr(0, 10));
  EXPECT_EQ(LastResult(), Bytes(3.25));
}

OUT_OF_LINE long double Extended(long double a) {
  __asm__ volatile("");
  return a * 3;
}
TEST_F(ValuesTest, AReturnedLongDoubleStaysWhereItIs) {
  const auto extended = Record({}, {{.how = How::kX87, .first = {}, .second = {}}}, Extended);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(extended(1.0L / 3 + i), (1.0L / 3 + i) * 3);
  EXPECT_EQ(InProcessAgent::Text(Events()).substr(0, 8), "C5 C5 C5");
  EXPECT_EQ(LastResult().substr(0, 10), Bytes((1.0L / 3 + 19) * 3).substr(0, 10));
}

OUT_OF_LINE int Three() {
  __asm__ volatile("");
  return 3;
}
TEST_F(ValuesTest, ALongDoubleThatIsNotThereIsToldAndRaisesNothing) {
  const auto three = Record({}, {{.how = How::kX87, .first = {}, .second = {}}}, Three);
  std::feclearexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(three(), 3);
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
  EXPECT_EQ(LastResult(), Bytes(uint64_t{0}, uint64_t{ValueFormat::kNoFloatExponent}));
}

// An exception that is pending, with its flag set and then unmasked, strikes at the next x87
// instruction that waits. That is none of ours.
TEST_F(ValuesTest, APendingFloatingPointExceptionIsLeftPending) {
  const auto three = Record({}, {{.how = How::kX87, .first = {}, .second = {}}}, Three);
  uint16_t before = 0, status = 0;
  const uint16_t unmasked = 0x37e;  // all but "invalid"
  __asm__ volatile("fnstcw %0" : "=m"(before));
  __asm__ volatile("fldz\n fldz\n fdivrp\n fstp %%st(0)\n fldcw %0" : : "m"(unmasked));
  three();
  __asm__ volatile("fnstsw %0\n fnclex\n fldcw %1" : "=m"(status) : "m"(before));
  EXPECT_EQ(status & 0x81, 0x81);
}

// What is only returned needs no event of its own.
TEST_F(ValuesTest, AResultStandsInTheCallItself) {
  const auto eight = Record({}, {Number(Integer(0), 4)}, Eight);
  eight(1, 2, 3, 4, 5, true, 7, 8);
  EXPECT_EQ(InProcessAgent::Text(Events()), "C5");
  EXPECT_EQ(LastResult(), Bytes(31));
}

OUT_OF_LINE const char* Same(const char* text) {
  __asm__ volatile("" : "+r"(text));
  return text;
}
TEST_F(ValuesTest, Texts) {
  const auto same =
      Record({Text(How::kTerminated, Integer(0))}, {Text(How::kTerminated, Integer(0))}, Same);
  const std::string long_text(100, 'x');
  for (const auto& [text, recorded] : std::initializer_list<std::pair<const char*, std::string>>{
           {"", Recorded("")},
           {"abc", Recorded("abc")},
           {"0123456789abcdef", Recorded("0123456789abcdef")},
           {"0123456789abcdefg", Recorded("0123456789abcdef", true)},
           {long_text.c_str(), Recorded(std::string(kLimit, 'x'), true)},
           {nullptr, Bytes(ValueFormat::kNullText)}}) {
    EXPECT_EQ(same(text), text);
    EXPECT_EQ(LastArguments(), recorded);
    EXPECT_EQ(LastResult(), recorded);
  }
}

TEST_F(ValuesTest, BadPointersAreToldNotFollowed) {
  const auto same = Record({Text(How::kTerminated, Integer(0))}, {}, Same);
  for (const uint64_t bad : {uint64_t{1}, uint64_t{0x1234}, ~uint64_t{0}, ~uint64_t{0} - 3,
                             uint64_t{1} << 63, uint64_t{0x8000'0000'0000}}) {
    const auto* pointer = reinterpret_cast<const char*>(bad);
    EXPECT_EQ(same(pointer), pointer);
    EXPECT_EQ(LastArguments(), Unreadable(pointer));
  }
}

// Two pages, of which the second cannot be read.
class EdgeOfMemory {
 public:
  EdgeOfMemory() {
    memory_ = static_cast<char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CheckInTest(memory_ != MAP_FAILED, "mmap");
    CheckInTest(mprotect(end(), kPage, PROT_NONE) == 0, "mprotect");
  }
  ~EdgeOfMemory() { munmap(memory_, 2 * kPage); }
  EdgeOfMemory(const EdgeOfMemory&) = delete;
  EdgeOfMemory& operator=(const EdgeOfMemory&) = delete;
  [[nodiscard]] char* end() const { return memory_ + kPage; }
  static constexpr size_t kPage = 4096;

 private:
  char* memory_ = nullptr;
};

TEST_F(ValuesTest, TextsAreReadUpToTheEdgeOfMemory) {
  const auto same = Record({Text(How::kTerminated, Integer(0))}, {}, Same);
  const EdgeOfMemory memory;
  std::memcpy(memory.end() - 4, "abc", 4);
  same(memory.end() - 4);
  EXPECT_EQ(LastArguments(), Recorded("abc"));
  same(memory.end() - 3);
  EXPECT_EQ(LastArguments(), Recorded("bc"));
  // One without an end.
  memory.end()[-1] = 'd';
  same(memory.end() - 4);
  EXPECT_EQ(LastArguments(), Recorded("abcd", true));
  same(memory.end());
  EXPECT_EQ(LastArguments(), Unreadable(memory.end()));
}

TEST_F(ValuesTest, APageThatAnotherThreadUnmaps) {
  const auto same = Record({Text(How::kTerminated, Integer(0))}, {}, Same);
  constexpr size_t kPage = 4096;
  void* const place = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) {
      void* const at = mmap(place, kPage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      std::memcpy(at, "text", 5);
      mmap(place, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
  });
  const auto* text = static_cast<const char*>(place);
  for (int i = 0; i < 20'000; ++i) {
    EXPECT_EQ(same(text), text);
    agent_.FreeFull();
  }
  stop = true;
  other.join();
  for (const Event& event : Events()) {
    if (event.kind != EventKind::kEntry) continue;
    EXPECT_THAT(event.values, testing::AnyOf(Recorded("text"), Recorded(""), Unreadable(place)));
  }
  munmap(place, kPage);
}

TEST_F(ValuesTest, WhereNoSystemCallMayBeMadeOnlyTheStackIsRead) {
  const auto same = Record({Text(How::kTerminated, Integer(0))}, {}, Same);
  agent_.control().no_text_reads = 1;
  static const char kElsewhere[] = "elsewhere";
  same(kElsewhere);
  EXPECT_EQ(LastArguments(), Unreadable(kElsewhere));
}

OUT_OF_LINE size_t Size(const std::string& text) {
  __asm__ volatile("");
  return text.size();
}
TEST_F(ValuesTest, ObjectsWithTexts) {
  const auto size = Record({Text(How::kObject, Integer(0))}, {}, Size);
  for (const char* const text : {"", "short", "fifteen letters"}) {
    const std::string object = text;
    EXPECT_EQ(size(object), object.size());
    EXPECT_EQ(LastArguments(), Recorded(text));
    const auto on_heap = std::make_unique<std::string>(text);
    size(*on_heap);
    EXPECT_EQ(LastArguments(), Recorded(text));
  }
  size(std::string("with\0nul", 8));
  EXPECT_EQ(LastArguments(), Recorded(std::string_view("with\0nul", 8)));
  size(std::string(50, 'y'));
  EXPECT_EQ(LastArguments(), Recorded(std::string(kLimit, 'y'), true));
}

OUT_OF_LINE int Look(const void* object) {
  __asm__ volatile("" : : "r"(object));
  return 1;
}
TEST_F(ValuesTest, ObjectsThatAreNone) {
  const auto look = Record({Text(How::kObject, Integer(0))}, {}, Look);
  EXPECT_EQ(look(nullptr), 1);
  EXPECT_EQ(LastArguments(), Unreadable(nullptr));
  const uint64_t wild[4] = {0x4141414141414141, 7, 0, 0};
  EXPECT_EQ(look(wild), 1);
  EXPECT_EQ(LastArguments(), Unreadable(reinterpret_cast<const void*>(wild[0])));
  const uint64_t endless[4] = {InProcessAgent::Address("abcdefghijklmnopqrstuvwxyz"), ~uint64_t{0}};
  EXPECT_EQ(look(endless), 1);
  EXPECT_EQ(LastArguments(), Recorded("abcdefghijklmnop", true));
}

TEST_F(ValuesTest, OtherLibrariesStrings) {
  auto look = Record({Text(How::kLengthBefore, Integer(0))}, {}, Look);
  struct {
    uint64_t length = 5, capacity = 5, references = 0;
    char text[8] = "older";
  } shared;
  const char* const old_string = shared.text;
  look(&old_string);
  EXPECT_EQ(LastArguments(), Recorded("older"));

  ValueRead libcxx = Text(How::kLibcxx, Integer(0));
  libcxx.bytes = 24;
  libcxx.length_offset = 0;
  look = Record({libcxx}, {}, Look);
  struct {
    uint8_t size = 2 * 4;
    char text[23] = "here";
  } short_string;
  look(&short_string);
  EXPECT_EQ(LastArguments(), Recorded("here"));
  const uint64_t long_string[3] = {49, 20, InProcessAgent::Address("twenty letters of it")};
  look(long_string);
  EXPECT_EQ(LastArguments(), Recorded("twenty letters o", true));
}

// Of calls that are too short to be kept nothing is left, nor of those in them.
int (*volatile inner)(int) = nullptr;
OUT_OF_LINE int Inner(int x) {
  __asm__ volatile("");
  return x + 1;
}
OUT_OF_LINE int Outer(int x) { return inner(x) + inner(x); }
TEST_F(ValuesTest, ShortCallsAreTakenBack) {
  tracedata::ActionSet set;
  for (const uint32_t id : {1u, 2u}) {
    set.functions.emplace(id, RecordValues({Number(Integer(0), 4)}, {Number(Integer(0), 4)}));
  }
  agent_.Act(set);
  const auto outer = agent_.Call(1, Outer);
  inner = agent_.Call(2, Inner);
  agent_.control().min_duration = uint64_t{1} << 40;
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(outer(i), 2 * i + 2);
  EXPECT_EQ(InProcessAgent::Text(Events()), "");
  agent_.control().min_duration = 0;
  outer(7);
  EXPECT_EQ(InProcessAgent::Text(Events()), "E1 E2 X2 E2 X2 X1");
  EXPECT_EQ(Events()[1].values, Bytes(7));
  EXPECT_EQ(LastResult(), Bytes(16));
}

// Longer than a chunk, while others are open.
TEST_F(ValuesTest, ManyValuesGoOnFromChunkToChunk) {
  const auto same = Record({Text(How::kTerminated, Integer(0))}, {Number(Integer(0), 8)}, Same);
  // Without new bases, which there are where a chunk takes longer to fill than a word of ticks
  // counts.
  const auto entries_and_exits = [&] {
    auto events = Events();
    std::erase_if(events, [](const Event& event) { return event.kind == EventKind::kBase; });
    return events;
  };
  static const char kText[] = "some text";
  constexpr int kRounds = 20, kCalls = 10'000;
  int calls = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kCalls; ++i) same(kText);
    for (const Event& event : entries_and_exits()) {
      ASSERT_THAT(event.kind, testing::AnyOf(EventKind::kEntry, EventKind::kExit));
      ASSERT_EQ(event.values, event.kind == EventKind::kEntry
                                  ? Recorded(kText)
                                  : Bytes(InProcessAgent::Address(kText)));
    }
    // The one that is written to has been looked at, too, and its events are seen again.
    const auto seen = entries_and_exits().size();
    calls += static_cast<int>(seen / 2);
    agent_.FreeFull();
    calls -= static_cast<int>(entries_and_exits().size() / 2);
  }
  EXPECT_EQ(calls + static_cast<int>(entries_and_exits().size() / 2), kRounds * kCalls);
}

// No register is different, where values are read neither.
typedef double Four __attribute__((vector_size(16)));
OUT_OF_LINE Four Vectors(Four a, Four b, const char* text, Four c, Four d) {
  __asm__ volatile("" : : "r"(text));
  return a * b + c * d;
}
TEST_F(ValuesTest, VectorRegistersHold) {
  const auto vectors = Record({Vector(0, 16), Vector(3, 16), Text(How::kTerminated, Integer(0))},
                              {Vector(0, 16)}, Vectors);
  const Four a = {1, 2}, b = {3, 4}, c = {5, 6}, d = {7, 8};
  const Four sum = vectors(a, b, "text", c, d);
  EXPECT_EQ(sum[0], 38);
  EXPECT_EQ(sum[1], 56);
  EXPECT_EQ(LastArguments(), Bytes(1.0, 2.0, 7.0, 8.0) + Recorded("text"));
  EXPECT_EQ(LastResult(), Bytes(38.0, 56.0));
}

}  // namespace
}  // namespace stackreel::agent
#endif
