#include "tracedata/action_table.h"

#include <gtest/gtest.h>

#include <cstring>

namespace stackreel::tracedata {
namespace {

template <typename T>
T ReadAt(const std::vector<uint8_t>& bytes, size_t at) {
  T value;
  EXPECT_LE(at + sizeof(T), bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

TEST(ActionTableTest, EachFunctionIsFoundByItsNumber) {
  ActionSet set{.functions = {}, .root_state = kOutside, .durations = {100, 200}};
  set.functions[2] = {.actions = {.flags = kBegins}, .list = {1, 2, 3}};
  set.functions[5] = {.actions = {.flags = kSetsLevels, .levels = 7}, .list = {}};
  const std::vector<uint8_t> bytes = EncodeActionTable(set);
  const auto table = ReadAt<ActionTable>(bytes, 0);
  EXPECT_EQ(table.functions, 6u);
  EXPECT_EQ(table.root_state, kOutside);
  EXPECT_EQ(table.durations[1], 100u);
  EXPECT_EQ(table.durations[2], 200u);
  const auto offset = [&](size_t i) { return ReadAt<uint32_t>(bytes, sizeof(table) + (4 * i)); };
  for (const size_t i : {0, 1, 3, 4}) EXPECT_EQ(offset(i), 0u);
  const auto begins = ReadAt<FunctionActions>(bytes, offset(2));
  EXPECT_EQ(begins.flags, kBegins);
  EXPECT_EQ(begins.list % 8, 0u);
  EXPECT_EQ(begins.list_size, 3u);
  EXPECT_EQ(bytes[begins.list + 2], 3);
  const auto levels = ReadAt<FunctionActions>(bytes, offset(5));
  EXPECT_EQ(levels.levels, 7);
  EXPECT_EQ(levels.list_size, 0u);
}

TEST(ActionTableTest, NoFunctions) {
  const std::vector<uint8_t> bytes = EncodeActionTable({});
  EXPECT_EQ(bytes.size(), sizeof(ActionTable));
  EXPECT_EQ(ReadAt<ActionTable>(bytes, 0).functions, 0u);
}

}  // namespace
}  // namespace stackreel::tracedata
