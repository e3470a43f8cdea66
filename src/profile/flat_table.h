// The flat table: one row for each combination of values of the sort keys.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "profile/filter.h"
#include "profile/profile.h"
#include "profile/stack_weights.h"

namespace stackreel::profile {

enum class SortKey : uint8_t { kComm, kDso, kSym, kPid, kTid, kCpu, kSrcline };

const char* SortKeyName(SortKey key);
// "comm,dso,sym" → keys; kUsage names the word that is none.
Result<std::vector<SortKey>> ParseSortKeys(std::string_view text);

// The values of those sort keys that belong to a sample; the others are 0.
struct SampleGroup {
  TextId comm = 0;
  uint32_t pid = 0, tid = 0, cpu = 0;
  friend auto operator<=>(const SampleGroup&, const SampleGroup&) = default;
};

// Self: samples whose innermost function it is, where an inlined function counts for the function
// it was inlined into, as in perf. Children: samples that have it anywhere, recursion counted once.
struct FlatRow {
  uint32_t group = 0;        // into FlatTable::groups
  uint32_t frame_key = 0;    // FlatTable::key_of_frame of its frames
  FrameId frame = kNoFrame;  // one of them; kNoFrame: samples without any frame
  Amount self, children;
};

struct FlatTable {
  std::vector<SortKey> keys;
  bool children = false;      // rows are sorted by children, else by self
  std::vector<FlatRow> rows;  // largest first, equal ones by the text of their keys
  std::vector<SampleGroup> groups;
  std::vector<uint32_t> key_of_frame;  // frames that no key tells apart have equal numbers
  Amount total;                        // of the selected samples
};

// Rows of which `children` (or self, if !children) is not zero. Frames that are markers have no row
// unless they are all that a stack has. Linear in stacks and samples of the profile, for each
// group.
FlatTable MakeFlatTable(const Profile& profile, const Filter& filter,
                        const std::vector<SortKey>& keys, bool children);

// The value of one key in one row, as shown: "deep", "libc.so.6", "[.] main", "1234".
std::string RowText(const Profile& profile, const FlatTable& table, const FlatRow& row,
                    SortKey key);
// A frame's function, "0x1234" if it is not known, with " (inlined)" if it is.
std::string FrameName(const Profile& profile, const Frame& frame);

// The selected samples sorted by those values of the keys that samples have; groups[g] are those
// in [starts[g], starts[g + 1]).
struct GroupedSamples {
  std::vector<uint32_t> samples;
  std::vector<SampleGroup> groups;
  std::vector<size_t> starts;
};
GroupedSamples GroupSamples(const Profile& profile, const Filter& filter,
                            const std::vector<SortKey>& keys);
// Clears `weights` and lays the samples of one group over it.
void WeighGroup(const Profile& profile, const GroupedSamples& grouped, size_t group,
                StackWeights& weights);

// The innermost function of a stack that is not inlined (or a marker), else its innermost frame.
StackId SelfStack(const Profile& profile, StackId stack);

}  // namespace stackreel::profile
