#include "profile/flat_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace stackreel::profile {
namespace {

constexpr std::array<std::pair<SortKey, const char*>, 7> kSortKeyNames = {{
    {SortKey::kComm, "comm"},
    {SortKey::kDso, "dso"},
    {SortKey::kSym, "sym"},
    {SortKey::kPid, "pid"},
    {SortKey::kTid, "tid"},
    {SortKey::kCpu, "cpu"},
    {SortKey::kSrcline, "srcline"},
}};

bool Has(const std::vector<SortKey>& keys, SortKey key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

SampleGroup GroupOf(const ProfileSample& sample, const std::vector<SortKey>& keys) {
  SampleGroup group;
  for (SortKey key : keys) {
    if (key == SortKey::kComm) group.comm = sample.comm;
    if (key == SortKey::kPid) group.pid = sample.pid;
    if (key == SortKey::kTid) group.tid = sample.tid;
    if (key == SortKey::kCpu) group.cpu = sample.cpu;
  }
  return group;
}

// Numbers frames by what the keys tell apart.
std::vector<uint32_t> NumberFrames(const Profile& profile, const std::vector<SortKey>& keys) {
  const bool dso = Has(keys, SortKey::kDso);
  const bool sym = Has(keys, SortKey::kSym);
  const bool srcline = Has(keys, SortKey::kSrcline);
  std::map<std::array<uint64_t, 7>, uint32_t> numbers;
  std::vector<uint32_t> key_of_frame;
  key_of_frame.reserve(profile.frames().size());
  for (const Frame& frame : profile.frames()) {
    std::array<uint64_t, 7> values = {};
    if (dso) values[0] = frame.module;
    if (sym) {
      values[1] = frame.function;
      values[2] = (frame.inlined ? 1u : 0u) | (frame.kernel ? 2u : 0u);
      if (frame.function == 0) {
        values[3] = frame.address;
        values[4] = frame.module;
      }
    }
    if (srcline) {
      values[5] = frame.file;
      values[6] = frame.line;
    }
    key_of_frame.push_back(
        numbers.try_emplace(values, static_cast<uint32_t>(numbers.size())).first->second);
  }
  return key_of_frame;
}

int Compare(uint64_t a, uint64_t b) { return a < b ? -1 : (a > b ? 1 : 0); }

// Orders rows of equal weight by what they show.
int CompareKeys(const Profile& profile, const FlatTable& table, const FlatRow& a,
                const FlatRow& b) {
  static constexpr Frame kNone;
  const SampleGroup& ga = table.groups[a.group];
  const SampleGroup& gb = table.groups[b.group];
  const Frame& fa = a.frame == kNoFrame ? kNone : profile.frames()[a.frame];
  const Frame& fb = b.frame == kNoFrame ? kNone : profile.frames()[b.frame];
  const auto text = [&](TextId x, TextId y) { return profile.Text(x).compare(profile.Text(y)); };
  for (SortKey key : table.keys) {
    int order = 0;
    switch (key) {
      case SortKey::kComm:
        order = text(ga.comm, gb.comm);
        break;
      case SortKey::kPid:
        order = Compare(ga.pid, gb.pid);
        break;
      case SortKey::kTid:
        order = Compare(ga.tid, gb.tid);
        break;
      case SortKey::kCpu:
        order = Compare(ga.cpu, gb.cpu);
        break;
      case SortKey::kDso:
        order = text(fa.module, fb.module);
        break;
      case SortKey::kSym:
        order = text(fa.function, fb.function);
        if (order == 0) order = Compare(fa.address, fb.address);
        if (order == 0) order = Compare(fa.inlined, fb.inlined);
        break;
      case SortKey::kSrcline:
        order = text(fa.file, fb.file);
        if (order == 0) order = Compare(fa.line, fb.line);
        break;
    }
    if (order != 0) return order;
  }
  return Compare(a.frame, b.frame);
}

// The rows of one group, by frame key.
class GroupRows {
 public:
  GroupRows(FlatTable& table, uint32_t group) : table_(table), group_(group) {}

  FlatRow& At(uint32_t frame_key, FrameId frame) {
    const auto [it, added] = rows_.try_emplace(frame_key, table_.rows.size());
    if (added) {
      FlatRow row;
      row.group = group_;
      row.frame_key = frame_key;
      row.frame = frame;
      table_.rows.push_back(row);
    }
    FlatRow& row = table_.rows[it->second];
    row.frame = std::min(row.frame, frame);
    return row;
  }

 private:
  FlatTable& table_;
  uint32_t group_;
  std::unordered_map<uint32_t, size_t> rows_;
};

void AddGroupRows(const Profile& profile, const StackWeights& weights,
                  const std::vector<StackId>& nearest_same, uint32_t group, FlatTable& table) {
  GroupRows rows(table, group);
  for (StackId stack : weights.touched()) {
    const FrameId frame = profile.stacks()[stack].frame;
    const bool has_row = !profile.frames()[frame].marker;
    if (has_row && nearest_same[stack] == kEmptyStack) {
      rows.At(table.key_of_frame[frame], frame).children += weights.total(stack);
    }
    if (weights.self(stack).samples == 0) continue;
    const FrameId self = profile.stacks()[SelfStack(profile, stack)].frame;
    FlatRow& row = rows.At(table.key_of_frame[self], self);
    row.self += weights.self(stack);
    if (profile.frames()[self].marker) row.children += weights.self(stack);
  }
  if (weights.without_stack().samples > 0) {
    FlatRow row;
    row.group = group;
    row.frame_key = UINT32_MAX;
    row.self = row.children = weights.without_stack();
    table.rows.push_back(row);
  }
}

}  // namespace

const char* SortKeyName(SortKey key) {
  for (const auto& [k, name] : kSortKeyNames) {
    if (k == key) return name;
  }
  return "";
}

Result<std::vector<SortKey>> ParseSortKeys(std::string_view text) {
  std::vector<SortKey> keys;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    if (word == "symbol") word = "sym";  // perf's other name for it
    const auto* it = std::find_if(kSortKeyNames.begin(), kSortKeyNames.end(),
                                  [&](const auto& entry) { return word == entry.second; });
    if (it == kSortKeyNames.end()) {
      return Fail(Error(ErrorKind::kUsage, fmt::format("\"{}\" is no sort key", word))
                      .WithCure("use some of comm, dso, sym, pid, tid, cpu, srcline"));
    }
    if (!Has(keys, it->first)) keys.push_back(it->first);
    if (comma == std::string_view::npos) return keys;
    text.remove_prefix(comma + 1);
  }
}

StackId SelfStack(const Profile& profile, StackId stack) {
  for (StackId s = stack; s != kEmptyStack; s = profile.stacks()[s].caller) {
    const Frame& frame = profile.frames()[profile.stacks()[s].frame];
    if (!frame.inlined && !frame.marker) return s;
  }
  return stack;
}

GroupedSamples GroupSamples(const Profile& profile, const Filter& filter,
                            const std::vector<SortKey>& keys) {
  std::map<SampleGroup, std::vector<uint32_t>> by_group;
  for (uint32_t i : SelectSamples(profile, filter)) {
    by_group[GroupOf(profile.samples()[i], keys)].push_back(i);
  }
  GroupedSamples grouped;
  grouped.starts.push_back(0);
  for (const auto& [group, samples] : by_group) {
    grouped.groups.push_back(group);
    grouped.samples.insert(grouped.samples.end(), samples.begin(), samples.end());
    grouped.starts.push_back(grouped.samples.size());
  }
  return grouped;
}

void WeighGroup(const Profile& profile, const GroupedSamples& grouped, size_t group,
                StackWeights& weights) {
  weights.Clear();
  for (size_t i = grouped.starts[group]; i < grouped.starts[group + 1]; ++i) {
    const ProfileSample& sample = profile.samples()[grouped.samples[i]];
    weights.Add(sample.stack, {sample.weight, sample.count});
  }
  weights.SumUp();
}

FlatTable MakeFlatTable(const Profile& profile, const Filter& filter,
                        const std::vector<SortKey>& keys, bool children) {
  FlatTable table;
  table.keys = keys;
  table.children = children;
  table.key_of_frame = NumberFrames(profile, keys);
  const std::vector<StackId> nearest_same = StackForest(profile).NearestSame(table.key_of_frame);
  const GroupedSamples grouped = GroupSamples(profile, filter, keys);
  table.groups = grouped.groups;
  StackWeights weights(profile);
  for (uint32_t group = 0; group < grouped.groups.size(); ++group) {
    WeighGroup(profile, grouped, group, weights);
    AddGroupRows(profile, weights, nearest_same, group, table);
  }
  for (const FlatRow& row : table.rows) table.total += row.self;
  std::erase_if(table.rows, [&](const FlatRow& row) {
    return (children ? row.children : row.self).samples == 0;
  });
  std::sort(table.rows.begin(), table.rows.end(), [&](const FlatRow& a, const FlatRow& b) {
    const auto order = [&](const FlatRow& r) {
      return children ? std::tuple(r.children.weight, r.self.weight)
                      : std::tuple(r.self.weight, uint64_t{0});
    };
    if (order(a) != order(b)) return order(a) > order(b);
    return CompareKeys(profile, table, a, b) < 0;
  });
  return table;
}

std::string FrameName(const Profile& profile, const Frame& frame) {
  std::string name(profile.Text(frame.function));
  if (name.empty()) name = fmt::format("{:#x}", frame.address);
  if (frame.inlined) name += " (inlined)";
  return name;
}

std::string RowText(const Profile& profile, const FlatTable& table, const FlatRow& row,
                    SortKey key) {
  const SampleGroup& group = table.groups[row.group];
  const auto number = [](uint32_t n) { return n == kNoNumber ? "-1" : std::to_string(n); };
  switch (key) {
    case SortKey::kComm:
      return std::string(profile.Text(group.comm));
    case SortKey::kPid:
      return number(group.pid);
    case SortKey::kTid:
      return number(group.tid);
    case SortKey::kCpu:
      return number(group.cpu);
    case SortKey::kDso:
    case SortKey::kSym:
    case SortKey::kSrcline:
      break;
  }
  if (row.frame == kNoFrame) return key == SortKey::kSym ? "[no stack]" : "[unknown]";
  const Frame& frame = profile.frames()[row.frame];
  if (key == SortKey::kDso) {
    return frame.module == 0 ? "[unknown]" : std::string(profile.Text(frame.module));
  }
  if (key == SortKey::kSrcline) {
    return frame.file == 0 ? "??:0" : fmt::format("{}:{}", profile.Text(frame.file), frame.line);
  }
  return (frame.kernel ? "[k] " : "[.] ") + FrameName(profile, frame);
}

}  // namespace stackreel::profile
