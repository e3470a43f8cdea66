#include "tracedata/action_table.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace stackreel::tracedata {

namespace {

constexpr size_t kAlign = 8;

// Where it stands.
size_t Append(std::vector<uint8_t>& bytes, ByteView added) {
  const size_t at = (bytes.size() + kAlign - 1) / kAlign * kAlign;
  bytes.resize(at);
  bytes.insert(bytes.end(), added.begin(), added.end());
  return at;
}

}  // namespace

std::vector<uint8_t> EncodeActionTable(const ActionSet& set) {
  ActionTable table;
  table.functions = set.functions.empty() ? 0 : set.functions.rbegin()->first + 1;
  table.root_state = set.root_state;
  const size_t durations = std::min<size_t>(set.durations.size(), kDurations - 1);
  std::copy_n(set.durations.begin(), durations, table.durations + 1);
  std::vector<uint8_t> bytes(sizeof(table) + (table.functions * sizeof(uint32_t)));
  std::memcpy(bytes.data(), &table, sizeof(table));
  for (const auto& [function, call] : set.functions) {
    FunctionActions actions = call.actions;
    actions.list_size = static_cast<uint32_t>(call.list.size());
    actions.list = static_cast<uint32_t>(Append(bytes, call.list));
    const auto at = static_cast<uint32_t>(
        Append(bytes, ByteView(reinterpret_cast<const uint8_t*>(&actions), sizeof(actions))));
    std::memcpy(bytes.data() + sizeof(table) + (function * sizeof(at)), &at, sizeof(at));
  }
  return bytes;
}

}  // namespace stackreel::tracedata
