// EventTable: which event a record belongs to, and where in it its time is.
#include <bit>
#include <cstddef>
#include <utility>

#include "perfdata/reader.h"
#include "perfdata/record_size.h"

namespace stackreel::perfdata {
namespace {

// Bytes that the fields of `bits` take where each takes 8.
uint32_t BytesOf(uint64_t sample_type, uint64_t bits) {
  return static_cast<uint32_t>(8 * std::popcount(sample_type & bits));
}

std::optional<uint64_t> LoadFromStart(const RawRecord& raw, uint32_t offset, Endian endian) {
  if (kRecordHeaderSize + offset + 8 > raw.bytes.size()) return std::nullopt;
  return LoadUnaligned<uint64_t>(raw.bytes.data() + kRecordHeaderSize + offset, endian);
}

std::optional<uint64_t> LoadFromEnd(const RawRecord& raw, uint32_t back, Endian endian) {
  if (kRecordHeaderSize + back > raw.bytes.size()) return std::nullopt;
  return LoadUnaligned<uint64_t>(raw.bytes.data() + raw.bytes.size() - back, endian);
}

bool IsKernelRecord(const RawRecord& raw) {
  return raw.type < static_cast<uint32_t>(RecordType::kHeaderAttr);
}

}  // namespace

// SAMPLE begins [IDENTIFIER] [IP] [TID] [TIME] [ADDR] [ID] …; all other kernel records of an event
// with sample_id_all end … [TID] [TIME] [ID] [STREAM_ID] [CPU] [IDENTIFIER].
EventTable::Layout EventTable::LayoutOf(const Attr& attr) {
  Layout layout;
  const uint64_t type = attr.sample_type;
  if ((type & kSampleIdentifier) != 0) {
    layout.sample_id = 0;
  } else if ((type & kSampleId) != 0) {
    layout.sample_id = BytesOf(type, kSampleIp | kSampleTid | kSampleTime | kSampleAddr);
  }
  if ((type & kSampleTime) != 0) {
    layout.sample_time = BytesOf(type, kSampleIdentifier | kSampleIp | kSampleTid);
  }
  if (!attr.sample_id_all()) return layout;
  if ((type & kSampleIdentifier) != 0) {
    layout.trailer_id = 8;
  } else if ((type & kSampleId) != 0) {
    layout.trailer_id = BytesOf(type, kSampleId | kSampleStreamId | kSampleCpu);
  }
  if ((type & kSampleTime) != 0) {
    layout.trailer_time =
        BytesOf(type, kSampleTime | kSampleId | kSampleStreamId | kSampleCpu | kSampleIdentifier);
  }
  return layout;
}

std::optional<uint32_t> EventTable::IndexOf(uint64_t id) const {
  if (events_.empty()) return std::nullopt;
  if (id == 0 || events_.size() == 1) return 0;
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? 0 : it->second;
}

std::optional<uint64_t> EventTable::IdOf(const RawRecord& raw, const Layout& layout,
                                         Endian endian) {
  if (raw.record_type() == RecordType::kSample) {
    if (!layout.sample_id) return std::nullopt;
    return LoadFromStart(raw, *layout.sample_id, endian);
  }
  if (!layout.trailer_id) return std::nullopt;
  return LoadFromEnd(raw, *layout.trailer_id, endian);
}

std::optional<uint32_t> EventTable::IndexOf(const RawRecord& raw, Endian endian) const {
  if (events_.empty() || !IsKernelRecord(raw)) return std::nullopt;
  if (events_.size() == 1) return 0;
  if (layouts_agree_) {
    const std::optional<uint64_t> id = IdOf(raw, layouts_.front(), endian);
    return id ? IndexOf(*id) : 0;
  }
  // Where the id is depends on which event it is: only an id that names an event which has it there
  // is believed.
  for (const Layout& layout : layouts_) {
    const std::optional<uint64_t> id = IdOf(raw, layout, endian);
    if (!id) continue;
    const auto it = by_id_.find(*id);
    if (it != by_id_.end() && IdOf(raw, layouts_[it->second], endian) == id) return it->second;
  }
  return 0;
}

std::optional<uint64_t> EventTable::TimeOf(const RawRecord& raw, Endian endian) const {
  const std::optional<uint32_t> event = IndexOf(raw, endian);
  return event ? TimeOf(raw, endian, *event) : std::nullopt;
}

std::optional<uint64_t> EventTable::TimeOf(const RawRecord& raw, Endian endian,
                                           uint32_t event) const {
  if (event >= layouts_.size() || !IsKernelRecord(raw)) return std::nullopt;
  const Layout& layout = layouts_[event];
  if (raw.record_type() == RecordType::kSample) {
    if (!layout.sample_time) return std::nullopt;
    return LoadFromStart(raw, *layout.sample_time, endian);
  }
  if (!layout.trailer_time) return std::nullopt;
  return LoadFromEnd(raw, *layout.trailer_time, endian);
}

void EventTable::Add(Event event) {
  const auto index = static_cast<uint32_t>(events_.size());
  const std::vector<uint64_t> ids = std::move(event.ids);
  event.ids.clear();
  if (event.name.empty()) event.name = AttrName(event.attr);
  layouts_.push_back(LayoutOf(event.attr));
  if (layouts_.back() != layouts_.front()) layouts_agree_ = false;
  events_.push_back(std::move(event));
  AddIds(index, ids);
}

void EventTable::AddIds(uint32_t event, const std::vector<uint64_t>& ids) {
  if (event >= events_.size()) return;
  events_[event].ids.insert(events_[event].ids.end(), ids.begin(), ids.end());
  for (const uint64_t id : ids) {
    if (id != 0) by_id_.emplace(id, event);  // 0 is what zeros behind a text look like, and no id
  }
}

void EventTable::SetName(uint64_t id, std::string name) {
  const std::optional<uint32_t> event = IndexOf(id);
  if (event && (*event != 0 || id == 0 || events_.size() == 1 || HasId(id))) {
    SetEventName(*event, std::move(name));
  }
}

void EventTable::SetEventName(uint32_t event, std::string name) {
  if (event < events_.size()) events_[event].name = std::move(name);
}

}  // namespace stackreel::perfdata
