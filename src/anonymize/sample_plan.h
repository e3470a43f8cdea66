// Samples that are rewritten where their fields lie, without being decoded: those of events that
// keep all their fields, where the places of these follow from the event and the length of the call
// chain. What comes of it is what decoding, FieldTransform and encoding give.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "anonymize/field_transform.h"
#include "anonymize/level.h"
#include "perfdata/attr.h"
#include "perfdata/record.h"
#include "perfdata/schema.h"

namespace stackreel::anonymize {

class SamplePlan {
 public:
  // Of samples of an event that is `recorded` in one recording and `written` in the other. Nothing
  // if they lose fields, or have some whose place depends on more than the length of the chain.
  static std::optional<SamplePlan> Make(const perfdata::Attr& recorded,
                                        const perfdata::Attr& written, Level level, Endian endian);

  // Whether the sample is exactly as long as its fields: others are to be decoded.
  [[nodiscard]] bool Fits(ByteView record) const;
  // The process, and the thread, of a sample that fits; 0 if samples do not tell.
  [[nodiscard]] uint32_t PidOf(ByteView record) const {
    return pid_ ? LoadUnaligned<uint32_t>(record.data() + *pid_, endian_) : 0;
  }
  [[nodiscard]] uint32_t TidOf(ByteView record) const {
    return pid_ ? LoadUnaligned<uint32_t>(record.data() + *pid_ + sizeof(uint32_t), endian_) : 0;
  }
  // Writes a sample that fits, its fields treated, to `out`, which has as many bytes. `fields` was
  // begun with it.
  void Rewrite(ByteView record, FieldTransform& fields, uint8_t* out) const;

 private:
  friend class SamplePlanner;
  struct Number {
    const perfdata::FieldInfo* field = nullptr;
    size_t offset = 0;  // from the record's start; of those behind the chain, from its end
    size_t width = 8;
    bool stays = false;  // always; else it may become another
  };
  void Treat(const Number& number, FieldTransform& fields, uint8_t* at) const;

  Endian endian_ = Endian::kLittle;
  std::vector<Number> before_, behind_;  // the chain, as they stand
  const perfdata::FieldInfo* chain_ = nullptr;
  std::optional<size_t> pid_;
  size_t size_before_ = 0, size_behind_ = 0;  // with the header; without the chain's length
};

}  // namespace stackreel::anonymize
