#include "dwarf/abbrev.h"

#include <algorithm>
#include <utility>

#include "dwarf/constants.h"

namespace stackreel::dwarf {
namespace {

uint16_t Narrow(uint64_t number) {
  return static_cast<uint16_t>(std::min<uint64_t>(number, UINT16_MAX));
}

}  // namespace

bool AbbrevTable::ReadAbbrev(ByteReader& reader, uint64_t* steps) {
  Abbrev abbrev;
  abbrev.code = reader.Uleb128();
  if (abbrev.code == 0) {
    damaged_ = !reader.ok();
    return false;
  }
  abbrev.tag = Narrow(reader.Uleb128());
  abbrev.has_children = reader.U8() != 0;
  abbrev.first_attribute = static_cast<uint32_t>(attributes_.size());
  uint64_t size = 0;
  bool fixed = true;
  while (reader.ok()) {
    const uint64_t name = reader.Uleb128();
    const uint64_t form = reader.Uleb128();
    if (name == 0 && form == 0) break;
    AttributeSpec spec{.name = Narrow(name), .form = Narrow(form)};
    if (form == kFormImplicitConst) spec.implicit = reader.Sleb128();
    const int form_size = FixedFormSize(spec.form, encoding_);
    if (form_size < 0) fixed = false;
    size += static_cast<uint64_t>(std::max(form_size, 0));
    attributes_.push_back(spec);
  }
  const uint64_t taken = 1 + attributes_.size() - abbrev.first_attribute;
  if (!reader.ok() || attributes_.size() > UINT32_MAX || taken > *steps) {
    attributes_.resize(abbrev.first_attribute);
    damaged_ = true;
    return false;
  }
  *steps -= taken;
  abbrev.attribute_count = static_cast<uint32_t>(attributes_.size()) - abbrev.first_attribute;
  if (fixed && size < Abbrev::kVaries) abbrev.fixed_size = static_cast<uint32_t>(size);
  abbrevs_.push_back(abbrev);
  return true;
}

AbbrevTable AbbrevTable::Read(ByteReader reader, const Encoding& encoding, uint64_t* steps) {
  AbbrevTable table;
  table.encoding_ = encoding;
  while (table.ReadAbbrev(reader, steps)) {
  }
  // Compilers number them 1, 2, 3 …; of two with one code the first counts.
  const auto by_code = [](const Abbrev& a, const Abbrev& b) { return a.code < b.code; };
  if (!std::is_sorted(table.abbrevs_.begin(), table.abbrevs_.end(), by_code)) {
    std::stable_sort(table.abbrevs_.begin(), table.abbrevs_.end(), by_code);
  }
  return table;
}

AbbrevTable AbbrevTable::ReadOne(ByteReader reader, const Encoding& encoding, uint64_t code,
                                 uint64_t* steps) {
  AbbrevTable table;
  table.encoding_ = encoding;
  while (table.ReadAbbrev(reader, steps)) {
    if (table.abbrevs_.back().code == code) break;
    table.abbrevs_.clear();
    table.attributes_.clear();
  }
  return table;
}

const Abbrev* AbbrevTable::Find(uint64_t code) const {
  if (code - 1 < abbrevs_.size() && abbrevs_[code - 1].code == code) return &abbrevs_[code - 1];
  const auto it = std::lower_bound(abbrevs_.begin(), abbrevs_.end(), code,
                                   [](const Abbrev& a, uint64_t c) { return a.code < c; });
  return it != abbrevs_.end() && it->code == code ? &*it : nullptr;
}

}  // namespace stackreel::dwarf
