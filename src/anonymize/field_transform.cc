#include "anonymize/field_transform.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "anonymize/public_names.h"
#include "perfdata/context_marker.h"

namespace stackreel::anonymize {

using perfdata::CpuMode;
using perfdata::FieldInfo;
using perfdata::Sensitivity;

uint64_t FieldTransform::Code(CpuMode mode, uint64_t address) {
  const std::optional<SpaceId> space = SpaceOf(mode);
  return remap_.Code(space ? *space : remap_.SpaceAt(context_.user, context_.machine, address),
                     address);
}

uint64_t FieldTransform::Address(Sensitivity sensitivity, uint64_t value) {
  switch (sensitivity) {
    case Sensitivity::kMapAddress:
      return context_.mapping.addr;
    case Sensitivity::kMapOffset:
      return context_.mapping.pgoff;
    case Sensitivity::kKernelAddress:
      return remap_.Code(KernelOf(context_.machine), value);
    case Sensitivity::kDataAddress:
      return value == 0
                 ? 0
                 : remap_.Data(remap_.SpaceAt(context_.user, context_.machine, value), value);
    default:
      return Code(context_.mode, value);
  }
}

uint64_t FieldTransform::Number(Sensitivity sensitivity, uint64_t value) {
  switch (TreatmentOf(level_, sensitivity)) {
    case Treatment::kKeep:
    case Treatment::kText:
      return value;
    case Treatment::kMove:
      return Address(sensitivity, value);
    case Treatment::kShift:
      return names_.Time(sensitivity, value);
    case Treatment::kRenumber:
      return names_.Pid(value);
    case Treatment::kPseudonym:
      return sensitivity == Sensitivity::kFileId ? names_.FileId(value) : 0;
    case Treatment::kDrop:
      // Of a record that ties two clocks nothing else is of use.
      dropped_content_ = dropped_content_ || sensitivity == Sensitivity::kCycles;
      break;
    case Treatment::kEvent:
      break;
  }
  return 0;
}

std::string FieldTransform::Text(Sensitivity sensitivity, const std::string& text) {
  // Readers know memory by such a name, which tells nothing, whatever its bytes look like.
  const bool is_of_memory = sensitivity == Sensitivity::kPath && IsNameOfMemory(text);
  const auto moved = [&](std::string name) {
    return is_of_memory ? std::move(name) : text_.Moved(name);
  };
  switch (TreatmentOf(level_, sensitivity)) {
    case Treatment::kKeep:
    case Treatment::kText:
      return moved(text);
    case Treatment::kPseudonym:
      // Also of memory: what is in the kernel is public by it.
      return moved(names_.Text(sensitivity, text));
    default:
      return "";
  }
}

void FieldTransform::operator()(const FieldInfo& field, std::string& text) {
  std::string moved = Text(field.sensitivity, text);
  Tell(field, moved != text, moved.empty());
  text = std::move(moved);
}

void FieldTransform::operator()(const FieldInfo& field, std::vector<std::string>& texts) {
  const std::vector<std::string> old = texts;
  const bool is_command_line = field.sensitivity == Sensitivity::kCommandLine &&
                               TreatmentOf(level_, field.sensitivity) == Treatment::kPseudonym;
  if (is_command_line) texts = names_.Arguments(old);
  for (std::string& text : texts) {
    text = is_command_line ? text_.Moved(text) : Text(field.sensitivity, text);
  }
  Tell(field, texts != old, false);
}

void FieldTransform::operator()(const FieldInfo& field, BuildId& id) {
  const Treatment treatment = TreatmentOf(level_, field.sensitivity);
  const BuildId old = id;
  if (treatment == Treatment::kPseudonym) {
    id = names_.Build(old);
  } else if (treatment != Treatment::kKeep) {
    id = BuildId();
  }
  if (text_.HasAddress(id.bytes())) {
    std::vector<uint8_t> bytes(id.bytes().begin(), id.bytes().end());
    names_.Tag(bytes);
    id = BuildId(bytes);
  }
  Tell(field, id != old, id.empty());
}

void FieldTransform::operator()(const FieldInfo& field, ByteView& bytes) {
  if (context_.safe_raw != nullptr && field.name == "raw") {
    const bool changed = !std::ranges::equal(bytes, *context_.safe_raw);
    bytes = *context_.safe_raw;
    return Tell(field, changed, false);
  }
  const bool drop = Drops(field) && !bytes.empty();
  if (drop) bytes = {};
  Tell(field, drop, drop);
}

void FieldTransform::operator()(const FieldInfo& field, std::vector<uint8_t>& bytes) {
  const bool drop = Drops(field) && !bytes.empty();
  if (drop) bytes.clear();
  dropped_content_ = dropped_content_ || drop;
  Tell(field, drop, drop);
}

// Markers change the mode of the entries behind them; behind the deferred one a cookie comes first.
// What a chain ends with as the thread's last one did became what that became.
template <bool kSwap>
void FieldTransform::MoveChain(ByteView entries, uint8_t* out, MovedChain& last) {
  const Endian endian = kSwap == (kNativeEndian == Endian::kBig) ? Endian::kLittle : Endian::kBig;
  CpuMode mode = CpuMode::kUser;  // of those before a marker, in whatever mode the sample is
  const size_t equal = std::min(last.outer, last.from.EqualTo(entries));
  const uint64_t outside_before = remap_.outside_mappings();
  const uint8_t* at = entries.data();
  const uint8_t* const end = at + entries.size();
  const uint8_t* const tail = end - equal;
  const uint8_t* outer = at;  // from here on there are addresses only
  uint8_t* const moved = out;
  std::optional<SpaceId> space;
  size_t taken = 0;  // of the last chain
  while (at != end) {
    space = SpaceOf(mode);
    const bool goes_on = at <= tail && space == last.space && equal != 0;
    const uint8_t* const stop = goes_on ? tail : end;
    for (; at != stop; at += 8, out += 8) {
      const auto entry = LoadUnaligned<uint64_t>(at, endian);
      if (entry >= perfdata::kContextMax) [[unlikely]] {
        break;
      }
      StoreUnaligned(out, space ? remap_.Code(*space, entry) : Code(mode, entry), endian);
    }
    if (goes_on && at == tail) {
      std::memcpy(out, last.to.Kept().last(equal).data(), equal);
      taken = equal;
      break;
    }
    if (at == end) break;
    const auto marker = LoadUnaligned<uint64_t>(at, endian);
    mode = perfdata::ModeOfMarker(marker).value_or(mode);
    const bool has_cookie = marker == perfdata::kContextUserDeferred && end - at >= 16;
    const size_t kept = has_cookie ? 16 : 8;
    std::memmove(out, at, kept);
    at += kept;
    out += kept;
    outer = at;
  }
  if (!space || remap_.outside_mappings() != outside_before) return;  // which are counted
  last.from.Keep(entries, equal);
  last.to.Keep({moved, entries.size()}, taken);
  last.outer = static_cast<size_t>(end - outer);
  last.space = *space;
}

void FieldTransform::Chain(const FieldInfo& field, ByteView entries, uint8_t* out) {
  MovedChain& last = last_chains_[context_.thread % kThreads];
  if (endian_ == kNativeEndian) {
    MoveChain<false>(entries, out, last);
  } else {
    MoveChain<true>(entries, out, last);
  }
  Tell(field, !entries.empty(), false);
}

void FieldTransform::operator()(const FieldInfo& field, std::vector<uint64_t>& numbers) {
  const bool drop = TreatmentOf(level_, field.sensitivity) == Treatment::kDrop && !numbers.empty();
  if (drop) numbers.clear();
  dropped_content_ = dropped_content_ || drop;
  const std::vector<uint64_t> old = numbers;
  if (IsChain(field)) {
    // Decoded, these entries are not as the recording has them, which chains of samples are.
    MovedChain alone;
    MoveChain<false>({reinterpret_cast<const uint8_t*>(old.data()), 8 * old.size()},
                     reinterpret_cast<uint8_t*>(numbers.data()), alone);
  } else {
    for (uint64_t& number : numbers) number = Number(field.sensitivity, number);
  }
  Tell(field, drop || numbers != old, drop);
}

void FieldTransform::operator()(const FieldInfo& field, std::vector<uint32_t>& numbers) {
  const bool drop = Drops(field) && !numbers.empty();
  if (drop) numbers.clear();
  Tell(field, drop, drop);
}

void FieldTransform::operator()(const FieldInfo& field, perfdata::U64Array& numbers) {
  if (!IsChain(field)) {
    const bool drop = Drops(field);
    if (drop) numbers = {};
    return Tell(field, drop, drop);
  }
  const ByteView old = numbers.bytes();
  std::vector<uint8_t>& bytes = Scratch();
  bytes.resize(old.size());
  Chain(field, old, bytes.data());
  numbers = perfdata::U64Array(bytes, endian_);
}

void FieldTransform::operator()(const FieldInfo& field, perfdata::BranchArray& branches) {
  const ByteView old = branches.bytes();
  std::vector<uint8_t>& bytes = Scratch();
  bytes.assign(old.begin(), old.end());
  for (size_t i = 0; i < branches.size(); ++i) {
    const perfdata::BranchEntry entry = branches[i];
    // Nothing says of which mode the ends of a branch are.
    const auto moved = [this](uint64_t address) {
      return remap_.Code(remap_.SpaceAt(context_.user, context_.machine, address), address);
    };
    StoreUnaligned(bytes.data() + 24 * i, moved(entry.from), endian_);
    StoreUnaligned(bytes.data() + 24 * i + 8, moved(entry.to), endian_);
    // In a damaged sample an address can stand where flags should, which are smaller.
    constexpr uint64_t kFlagsEnd = uint64_t{1} << 34;  // linux/perf_event.h, perf_branch_entry
    uint8_t* const at = bytes.data() + 24 * i + 16;
    const auto word = LoadUnaligned<uint64_t>(at, endian_);
    if (entry.flags >= kFlagsEnd && remap_.IsOriginal(word))
      StoreUnaligned(at, uint64_t{0}, endian_);
  }
  branches = perfdata::BranchArray(bytes, endian_);
  Tell(field, !branches.empty(), false);
}

void FieldTransform::operator()(const FieldInfo& field, perfdata::SampledRegs& registers) {
  const bool drop = Drops(field);
  if (drop) registers = {};
  Tell(field, drop, drop);
}

}  // namespace stackreel::anonymize
