// For verification: which bytes of a record or feature are which field, by the layout tables.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/build_id.h"
#include "base/byte_reader.h"
#include "base/bytes.h"
#include "perfdata/record.h"
#include "perfdata/schema.h"

namespace stackreel::anonymize {

// What the bytes of a field are to a search.
enum class FieldForm : uint8_t {
  kNumbers,  // one integer, or an array of them
  kBytes,    // text, build-ids, data: anything may stand at any offset
};

struct FieldSpan {
  size_t begin = 0, end = 0;                  // from the start of the bytes that are searched
  const perfdata::FieldInfo* info = nullptr;  // in a layout table; null: of no field
  FieldForm form = FieldForm::kNumbers;
  uint8_t width = 8;  // of one of the numbers
  // It is known already that none of its numbers, whole, is what is searched for.
  bool is_searched = false;
  // Times, and numbers of processes and files, look like parts of addresses, and are none: see
  // verify_bytes.h. Neither are types and sizes of records.
  [[nodiscard]] bool IsTime() const {
    return info != nullptr && info->sensitivity == perfdata::Sensitivity::kTime;
  }
  [[nodiscard]] bool IsNoAddress() const {
    return info == nullptr || IsTime() || info->sensitivity == perfdata::Sensitivity::kPid ||
           info->sensitivity == perfdata::Sensitivity::kFileId;
  }
  // One or several of 64 bits.
  [[nodiscard]] bool IsAddresses() const {
    return form == FieldForm::kNumbers && width == 8 && IsAddress();
  }
  // What parts of it are tells nothing: it is whole that it is looked at.
  [[nodiscard]] bool IsAddress() const {
    if (info == nullptr) return false;
    switch (info->sensitivity) {
      case perfdata::Sensitivity::kCodeAddress:
      case perfdata::Sensitivity::kDataAddress:
      case perfdata::Sensitivity::kMapAddress:
      case perfdata::Sensitivity::kMapOffset:
      case perfdata::Sensitivity::kKernelAddress:
        return true;
      default:
        return false;
    }
  }
};

// Observes a decode (perfdata::DecodeFields) and keeps where each field was.
class FieldSpans {
 public:
  // Offsets count from the start of `all`; what is decoded lies in it.
  void Begin(ByteView all) {
    base_ = all.data();
    spans_.clear();
    feature_begin_.reset();
  }
  // The field that has the byte at this offset needs no search: see FieldSpan::is_searched.
  void SetSearched(size_t offset) {
    for (FieldSpan& span : spans_) {
      if (offset >= span.begin && offset < span.end) span.is_searched = true;
    }
  }
  // Bytes that are no field's: a record's header, the place of a section.
  void AddHeader(size_t begin, size_t end, uint8_t width = 8) {
    spans_.push_back({begin, end, nullptr, FieldForm::kNumbers, width});
  }
  // What is decoded from now on is this feature. Its texts have their size before them
  // (perfdata::FeatureString), its lists how many there are: these tell nothing.
  void BeginFeature(ByteView feature) {
    feature_begin_ = static_cast<size_t>(feature.data() - base_);
  }
  // Numbers of 64 bits that are not looked at one by one: a file's header and attrs.
  void AddNumbersOfNoField(size_t begin, size_t end) {
    static constexpr perfdata::FieldInfo kNumber("", perfdata::Sensitivity::kNone);
    spans_.push_back({begin, end, &kNumber});
  }

  // An attr where no layout table has one: in a file's header.
  void AddAttr(size_t begin, size_t end) {
    static constexpr perfdata::FieldInfo kAttr("attr", perfdata::Sensitivity::kEventConfig);
    spans_.push_back({begin, end, &kAttr});
  }

  template <typename M>
  void Field(const perfdata::FieldInfo& info, const ByteReader& in, size_t begin, const M&) {
    const size_t size = in.offset() - begin;
    if (!in.ok() || size == 0) return;
    // Readers of parts of a feature count from the part's start.
    const auto end = static_cast<size_t>(in.Rest().data() - base_);
    if (feature_begin_) AddCounts(end - size);
    constexpr bool kIsList = std::same_as<M, std::vector<std::string>>;
    if constexpr (kIsList || std::same_as<M, std::string>) {
      if (feature_begin_ && AddTexts(info, end - size, end, in.endian(), kIsList)) return;
    }
    spans_.push_back({end - size, end, &info, FormOf<M>(), WidthOf<M>()});
  }
  void Enter(std::string_view, size_t) {}
  void Leave() {}

  [[nodiscard]] std::span<const FieldSpan> spans() const { return spans_; }

 private:
  template <typename M>
  static constexpr bool kIsBytes =
      std::same_as<M, std::string> || std::same_as<M, std::vector<std::string>> ||
      std::same_as<M, std::vector<uint8_t>> || std::same_as<M, ByteView> ||
      std::same_as<M, BuildId> || std::same_as<M, perfdata::CpuMap>;  // of 16-bit numbers
  template <typename M>
  static constexpr FieldForm FormOf() {
    return kIsBytes<M> || requires(M m) {
      requires std::same_as<typename M::value_type, uint8_t>;
    } ? FieldForm::kBytes : FieldForm::kNumbers;
  }
  template <typename M>
  static constexpr uint8_t WidthOf() {
    if constexpr (std::integral<M>) {
      return sizeof(M);
    } else if constexpr (std::same_as<M, std::vector<uint32_t>>) {
      return 4;
    }
    return 8;
  }

  // What stands between the last field of a feature and one that begins there.
  void AddCounts(size_t end) {
    const size_t begin = std::max(*feature_begin_, spans_.empty() ? 0 : spans_.back().end);
    constexpr size_t kMost = 8;  // how many events, and the size of an attr
    if (begin < end && end - begin <= kMost) AddHeader(begin, end, sizeof(uint32_t));
  }

  // Texts, each behind its size; of a list, behind how many there are. False if they are not: names
  // of binaries stand alone.
  bool AddTexts(const perfdata::FieldInfo& info, size_t begin, size_t end, Endian endian,
                bool is_list) {
    constexpr size_t kSize = sizeof(uint32_t);
    ByteReader in(ByteView(base_ + begin, end - begin), endian);
    if (is_list) in.Skip(kSize);
    const size_t first = spans_.size();
    if (is_list) AddHeader(begin, begin + kSize, kSize);
    while (in.remaining() >= kSize) {
      const size_t at = begin + in.offset();
      const uint32_t size = in.U32();
      AddHeader(at, at + kSize, kSize);
      in.Skip(size);
      spans_.push_back({at + kSize, at + kSize + size, &info, FieldForm::kBytes});
    }
    if (in.ok() && in.AtEnd()) return true;
    spans_.resize(first);
    return false;
  }

  const uint8_t* base_ = nullptr;
  std::optional<size_t> feature_begin_;  // where one began, if one did
  std::vector<FieldSpan> spans_;
};

}  // namespace stackreel::anonymize
