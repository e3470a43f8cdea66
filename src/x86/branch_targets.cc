#include "x86/branch_targets.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "x86/instruction_length.h"

namespace stackreel::x86 {
namespace {

constexpr uint64_t kChunk = 256 * 1024;

// The bytes of the displacement that ends the instruction; 0 if it is no direct branch.
size_t BranchFieldSize(const InstructionShape& shape) {
  if (shape.map == OpcodeMap::kOneByte) {
    const uint8_t opcode = shape.opcode;
    if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 || opcode == 0xeb) return 1;
    if (opcode == 0xe8 || opcode == 0xe9) return 4;
    if (opcode == 0xc7 && shape.modrm == 0xf8 && shape.length >= 6) return 4;  // xbegin
    return 0;
  }
  return shape.map == OpcodeMap::k0f && (shape.opcode & 0xf0) == 0x80 ? 4 : 0;
}

bool IsRipRelativeLea(const InstructionShape& shape) {
  return shape.map == OpcodeMap::kOneByte && shape.opcode == 0x8d && (shape.modrm & 0xc7) == 5;
}

}  // namespace

BranchTargets::BranchTargets(std::span<const CodeRange> ranges) {
  for (const CodeRange& range : ranges) {
    const uint64_t size = range.bytes.size();
    ranges_.push_back({range.start, size, std::vector<uint64_t>((size + 63) / 64)});
  }
  std::ranges::sort(ranges_, {}, &Range::start);
}

const BranchTargets::Range* BranchTargets::Find(Svma target) const {
  const auto after = std::ranges::upper_bound(ranges_, target, {}, &Range::start);
  if (after == ranges_.begin()) return nullptr;
  const Range& range = *std::prev(after);
  return target - range.start < range.size ? &range : nullptr;
}

bool BranchTargets::Add(Svma target) {
  const Range* const found = Find(target);
  if (found == nullptr) return false;
  const uint64_t offset = target - found->start;
  ranges_[static_cast<size_t>(found - ranges_.data())].bits[offset / 64] |= uint64_t{1}
                                                                            << (offset % 64);
  return true;
}

bool BranchTargets::Contains(Svma target) const {
  const Range* const range = Find(target);
  if (range == nullptr) return false;
  const uint64_t offset = target - range->start;
  return (range->bits[offset / 64] >> (offset % 64) & 1) != 0;
}

std::optional<Svma> BranchTargets::FirstIn(Svma begin, Svma end) const {
  for (const Range& range : ranges_) {
    const Svma range_end = range.start + range.size;
    const Svma last = std::min(end, range_end);
    for (Svma at = std::max(begin, range.start); at < last;) {
      const uint64_t offset = at - range.start;
      const uint64_t rest = range.bits[offset / 64] >> (offset % 64);
      if (rest == 0) {
        at = range.start + (offset / 64 + 1) * 64;
        continue;
      }
      const Svma found = at + static_cast<uint64_t>(std::countr_zero(rest));
      if (found >= last) break;
      return found;
    }
  }
  return std::nullopt;
}

uint64_t BranchTargets::Count() const {
  uint64_t count = 0;
  for (const Range& range : ranges_) {
    for (const uint64_t word : range.bits) count += static_cast<uint64_t>(std::popcount(word));
  }
  return count;
}

// Sets bits from several threads.
class TargetFinder {
 public:
  explicit TargetFinder(BranchTargets& targets) : targets_(targets) {}

  // Decodes [begin, end) of a range. An instruction may reach past `end`.
  void Sweep(const CodeRange& range, uint64_t begin, uint64_t end) {
    uint64_t undecodable = 0;
    const BranchTargets::Range* const own = targets_.Find(range.start);
    for (uint64_t at = begin; at < end;) {
      const InstructionShape shape = ReadShape(range.bytes.subspan(at));
      if (shape.length == 0) {
        ++undecodable;
        ++at;
        continue;
      }
      const uint8_t* const next = range.bytes.data() + at + shape.length;
      at += shape.length;
      int64_t displacement = 0;
      switch (BranchFieldSize(shape)) {
        case 1:
          displacement = static_cast<int8_t>(next[-1]);
          break;
        case 4:
          displacement = LoadUnaligned<int32_t>(next - 4, Endian::kLittle);
          break;
        default:
          if (!IsRipRelativeLea(shape)) continue;
          displacement = LoadUnaligned<int32_t>(next - 4, Endian::kLittle);
      }
      Mark(*own, range.start + at + static_cast<uint64_t>(displacement));
    }
    std::atomic_ref(targets_.undecodable_bytes_).fetch_add(undecodable, std::memory_order_relaxed);
  }

 private:
  void Mark(const BranchTargets::Range& own, Svma target) {
    const BranchTargets::Range* range = &own;
    if (target - own.start >= own.size) range = targets_.Find(target);
    if (range == nullptr) return;
    const uint64_t offset = target - range->start;
    const uint64_t bit = uint64_t{1} << (offset % 64);
    // All ranges are the set's own, which is not const.
    auto& word = const_cast<uint64_t&>(range->bits[offset / 64]);
    const std::atomic_ref<uint64_t> shared(word);
    if ((shared.load(std::memory_order_relaxed) & bit) == 0) {
      shared.fetch_or(bit, std::memory_order_relaxed);
    }
  }

  BranchTargets& targets_;
};

BranchTargets FindBranchTargets(std::span<const CodeRange> ranges,
                                std::span<const Svma> function_starts, Executor& executor) {
  BranchTargets targets(ranges);
  struct Piece {
    const CodeRange* range;
    uint64_t begin, end;
  };
  // From each start to the next; pieces are runs of them, of about kChunk.
  std::vector<Piece> pieces;
  std::vector<std::vector<uint64_t>> starts(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const CodeRange& range = ranges[i];
    const uint64_t size = range.bytes.size();
    auto at = std::ranges::lower_bound(function_starts, range.start);
    uint64_t begin = 0;
    for (; at != function_starts.end() && *at - range.start < size; ++at) {
      const uint64_t offset = *at - range.start;
      if (offset != 0) starts[i].push_back(offset);
      if (offset - begin >= kChunk) {
        pieces.push_back({&range, begin, offset});
        begin = offset;
      }
    }
    pieces.push_back({&range, begin, size});
    starts[i].push_back(size);
  }
  TargetFinder finder(targets);
  executor.ParallelFor(pieces.size(), [&](size_t i, size_t) {
    const Piece& piece = pieces[i];
    const auto& own = starts[static_cast<size_t>(piece.range - ranges.data())];
    uint64_t begin = piece.begin;
    for (auto next = std::ranges::upper_bound(own, begin); begin < piece.end; ++next) {
      const uint64_t end = std::min(*next, piece.end);
      finder.Sweep(*piece.range, begin, end);
      begin = end;
    }
  });
  return targets;
}

}  // namespace stackreel::x86
