// One visitor for the fields of all records, samples and features: each is treated as its class
// says.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "anonymize/attr_scrub.h"
#include "anonymize/build.h"
#include "anonymize/level.h"
#include "anonymize/pseudonyms.h"
#include "anonymize/report.h"
#include "perfdata/chain_tail.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"

namespace stackreel::anonymize {

// Whose addresses a record has.
struct AddressContext {
  SpaceId user = kNobodysSpace;
  Machine machine = Machine::kHost;
  perfdata::CpuMode mode = perfdata::CpuMode::kUnknown;
  MovedMapping mapping;                            // of MMAP and MMAP2
  const std::vector<uint8_t>* safe_raw = nullptr;  // of a sample that keeps it
  uint32_t thread = 0;                             // whose chains are like each other
  uint32_t pid = UINT32_MAX;
  const SpaceTracker* spaces = nullptr;  // of the process on the other machine
};

// Set it to a record, visit its fields, ask whether all that it is for was dropped.
class FieldTransform {
 public:
  FieldTransform(Level level, Endian endian, Remap& remap, const TextScrub& text, Pseudonyms& names)
      : level_(level), endian_(endian), remap_(remap), text_(text), names_(names) {}

  [[nodiscard]] Level level() const { return level_; }

  void Begin(const AddressContext& context, FieldTally& tally) {
    context_ = context;
    tally_ = &tally;
    tally.Begin();
    dropped_content_ = false;
    scratches_used_ = 0;
  }
  // Bytes that may hold anything were there, and have gone.
  [[nodiscard]] bool dropped_content() const { return dropped_content_; }

  template <std::integral N>
  void operator()(const perfdata::FieldInfo& field, N& value) {
    const auto old = value;
    value = static_cast<N>(Number(field.sensitivity, static_cast<uint64_t>(old)));
    Tell(field, value != old, value == 0);
  }
  void operator()(const perfdata::FieldInfo& field, std::string& text);
  void operator()(const perfdata::FieldInfo& field, std::vector<std::string>& texts);
  void operator()(const perfdata::FieldInfo& field, BuildId& id);
  void operator()(const perfdata::FieldInfo& field, ByteView& bytes);
  void operator()(const perfdata::FieldInfo& field, std::vector<uint8_t>& bytes);
  template <size_t kSize>
  void operator()(const perfdata::FieldInfo& field, std::array<uint8_t, kSize>& bytes) {
    const Treatment treatment = TreatmentOf(level_, field.sensitivity);
    const auto old = bytes;
    if (treatment == Treatment::kPseudonym) {
      names_.Tag(bytes);
    } else if (treatment != Treatment::kKeep) {
      bytes = {};
    }
    if (text_.HasAddress(bytes)) names_.Tag(bytes);
    Tell(field, bytes != old, Drops(field) && treatment != Treatment::kPseudonym);
  }
  // Call chains, and lists of numbers of other classes.
  void operator()(const perfdata::FieldInfo& field, std::vector<uint64_t>& numbers);
  void operator()(const perfdata::FieldInfo& field, std::vector<uint32_t>& numbers);
  void operator()(const perfdata::FieldInfo& field, perfdata::U64Array& numbers);
  void operator()(const perfdata::FieldInfo& field, perfdata::BranchArray& branches);
  void operator()(const perfdata::FieldInfo& field, perfdata::SampledRegs& registers);
  // A number that stays, as its class says.
  void Keep(const perfdata::FieldInfo& field) { tally_->Add(field, Fate::kKept); }
  // A call chain, 64-bit entries in the recording's byte order, to `out`, which has as many bytes.
  void Chain(const perfdata::FieldInfo& field, ByteView entries, uint8_t* out);
  // Structures that have one class as a whole.
  template <typename Whole>
    requires std::is_class_v<Whole>
  void operator()(const perfdata::FieldInfo& field, Whole& whole) {
    const bool drop = TreatmentOf(level_, field.sensitivity) != Treatment::kKeep;
    if (drop) whole = Whole();
    Tell(field, drop, drop);
  }

 private:
  [[nodiscard]] bool Drops(const perfdata::FieldInfo& field) const {
    return TreatmentOf(level_, field.sensitivity) != Treatment::kKeep;
  }
  void Tell(const perfdata::FieldInfo& field, bool changed, bool gone) {
    tally_->Add(field, !changed ? Fate::kKept : gone ? Fate::kDropped : Fate::kChanged);
  }
  uint64_t Number(perfdata::Sensitivity sensitivity, uint64_t value);
  uint64_t Address(perfdata::Sensitivity sensitivity, uint64_t value);
  uint64_t Code(perfdata::CpuMode mode, uint64_t address);
  // The space that addresses of this mode are in; nothing if that depends on the address.
  [[nodiscard]] std::optional<SpaceId> SpaceOf(perfdata::CpuMode mode) const {
    using perfdata::CpuMode;
    switch (mode) {
      case CpuMode::kKernel:
      case CpuMode::kHypervisor:
        return kHostKernel;
      case CpuMode::kGuestKernel:
        return kGuestKernel;
      case CpuMode::kUser:
        return UserSpaceOn(Machine::kHost);
      case CpuMode::kGuestUser:
        return UserSpaceOn(Machine::kGuest);
      case CpuMode::kUnknown:
        break;
    }
    return std::nullopt;
  }
  [[nodiscard]] SpaceId UserSpaceOn(Machine machine) const {
    if (machine == context_.machine || context_.spaces == nullptr) return context_.user;
    return context_.spaces->UserSpace(machine, context_.pid);
  }
  // A chain and what it became.
  struct MovedChain {
    perfdata::ChainTail from, to;
    size_t outer = 0;  // how many bytes at the end are addresses in `space`
    SpaceId space = 0;
  };
  // `entries`, whole ones, to `out`; `last` is another chain moved so, and then this one.
  template <bool kSwap>
  void MoveChain(ByteView entries, uint8_t* out, MovedChain& last);
  std::string Text(perfdata::Sensitivity sensitivity, const std::string& text);
  [[nodiscard]] bool IsChain(const perfdata::FieldInfo& field) const {
    return field.sensitivity == perfdata::Sensitivity::kCodeAddress;
  }

  Level level_;
  Endian endian_;
  Remap& remap_;
  const TextScrub& text_;
  Pseudonyms& names_;
  AddressContext context_;
  FieldTally* tally_ = nullptr;
  bool dropped_content_ = false;
  // What arrays of a sample point into; one for each such field, as a sample may have several. They
  // stay allocated for the next.
  std::vector<uint8_t>& Scratch() {
    if (scratches_used_ == scratches_.size()) scratches_.emplace_back();
    return scratches_[scratches_used_++];
  }
  static constexpr size_t kThreads = 64;
  std::array<MovedChain, kThreads> last_chains_;  // by thread
  std::deque<std::vector<uint8_t>> scratches_;
  size_t scratches_used_ = 0;
};

}  // namespace stackreel::anonymize
