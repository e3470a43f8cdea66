#include "perfdata/feature_layout.h"

#include <algorithm>

#include "base/check.h"

namespace stackreel::perfdata {

void DescribedAttr::Decode(ByteReader& in, Attr& value, const WireScope& scope) {
  Result<Attr> attr = DecodeAttr(in.Bytes(scope.attr_size), in.endian());
  if (!attr) return FailRead(in);
  value = std::move(*attr);
}

void DescribedAttr::Encode(ByteWriter& out, const Attr& value, const WireScope& scope) {
  out.Bytes(EncodeAttrSized(value, out.endian(), scope.attr_size));
}

void DescribedEvents::Encode(ByteWriter& out, const EventDesc& value,
                             const WireScope& outer) const {
  WireScope scope = outer;
  scope.attr_size = kAttrSizeFirst;
  for (const Event& event : value.events) {
    scope.attr_size = std::max(scope.attr_size, SmallestAttrSize(event.attr));
  }
  out.U32(static_cast<uint32_t>(value.events.size()));
  out.U32(scope.attr_size);
  for (const Event& event : value.events) EncodeFields(out, event, scope);
}

bool BuildIdRecords::WithoutPid(const BuildIdList& value) {
  return std::any_of(value.ids.begin(), value.ids.end(), [](const HeaderBuildId& id) {
    return id.filename.starts_with("nel.kallsyms]");
  });
}

void BuildIdRecords::Encode(ByteWriter& out, const BuildIdList& value,
                            const WireScope& outer) const {
  CHECK(value.ids.size() == value.misc.size());
  for (size_t i = 0; i < value.ids.size(); ++i) {
    WireScope scope = outer;
    scope.misc = value.misc[i];
    const size_t start = out.size();
    out.U32(static_cast<uint32_t>(RecordType::kHeaderBuildId));
    out.U16(scope.misc);
    out.U16(0);
    CHECK(value.ids[i].filename.size() <= kMaxBuildIdFilename);
    EncodeFields(out, value.ids[i], scope);
    out.PutAt(start + 6, static_cast<uint16_t>(out.size() - start));
  }
}

}  // namespace stackreel::perfdata
