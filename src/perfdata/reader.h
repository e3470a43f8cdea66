// Reads perf.data, file or pipe, by pushing each record to a sink; memory does not grow with the
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/io.h"
#include "perfdata/attr.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"

namespace stackreel::perfdata {

// What is known of the events. In pipe mode it grows while records arrive.
class EventTable {
 public:
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  // Index of the event with that id; id 0 or an unknown one gives event 0. Nothing if there is
  // none.
  [[nodiscard]] std::optional<uint32_t> IndexOf(uint64_t id) const;
  // The event of a raw record: by IDENTIFIER, ID, or its being the only one.
  [[nodiscard]] std::optional<uint32_t> IndexOf(const RawRecord& raw, Endian endian) const;
  // The record's time: of SAMPLE's TIME or the trailer's; nothing if the event carries none.
  [[nodiscard]] std::optional<uint64_t> TimeOf(const RawRecord& raw, Endian endian) const;
  // The same for who knows the event already.
  [[nodiscard]] std::optional<uint64_t> TimeOf(const RawRecord& raw, Endian endian,
                                               uint32_t event) const;
  // Whether an event has that id.
  [[nodiscard]] bool HasId(uint64_t id) const { return by_id_.contains(id); }

  void Add(Event event);
  void AddIds(uint32_t event, const std::vector<uint64_t>& ids);
  void SetName(uint64_t id, std::string name);
  void SetEventName(uint32_t event, std::string name);

 private:
  // Where an event's records have id and time: from the payload's start in SAMPLE, back from the
  // record's end in other kernel records.
  struct Layout {
    std::optional<uint32_t> sample_id, sample_time, trailer_id, trailer_time;
    friend bool operator==(const Layout&, const Layout&) = default;
  };
  static Layout LayoutOf(const Attr& attr);
  static std::optional<uint64_t> IdOf(const RawRecord& raw, const Layout& layout, Endian endian);

  std::vector<Event> events_;
  std::vector<Layout> layouts_;  // beside events_
  bool layouts_agree_ = true;
  std::unordered_map<uint64_t, uint32_t> by_id_;
};

// Where records go, in file order. Compressed records arrive unpacked.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // A failure ends the reading and is what Reader::ReadAll returns.
  virtual Status OnRecord(const RawRecord& raw) = 0;
  // A record that comes next is going to change what the reader tells of events and features: who
  // has other threads look at that waits for them.
  virtual void BeforeTakeUp() {}
};

enum class Container : uint8_t { kFile, kPipe };

// Where a file's header says its parts are.
struct FilePlaces {
  uint64_t attr_size = 0;  // of an attr, with the place of its ids
  uint64_t attrs_offset = 0, attr_count = 0;
  uint64_t data_offset = 0, data_size = 0;  // 0: the recorder did not end
  uint64_t features_offset = 0;
};

// How far reading got.
struct ReadEnd {
  // Bytes of the file, [start, end), that were no records; behind them reading went on.
  struct PassedOver {
    uint64_t start = 0, end = 0;
    friend bool operator==(const PassedOver&, const PassedOver&) = default;
  };
  static constexpr size_t kPassedOverKept = 100;

  bool complete = true;         // false: something was damaged or cut off; `damage` says how
  std::optional<Error> damage;  // the first, with offset
  std::vector<PassedOver> passed_over;  // the first kPassedOverKept
  bool unfinished = false;              // file whose recorder did not end: data.size was 0
  uint64_t records = 0;
  uint64_t bytes = 0;  // of the data section, as read
  uint64_t compressed_bytes = 0, decompressed_bytes = 0;
};

class Reader {
 public:
  // Reads the headers, attrs and (file mode) features. `source` must outlive the reader. kDamaged
  // if this is not perf.data at all; what can be read past is counted in counters().
  static Result<std::unique_ptr<Reader>> Open(FileSource& source);
  // The same of a directory that perf record --threads made: `data` has the header, `parts` are the
  // files data.0, data.1, … Their records come behind those of `data`, merged by time. All sources
  // must outlive the reader.
  static Result<std::unique_ptr<Reader>> OpenDirectory(FileSource& data,
                                                       std::vector<FileSource*> parts);
  virtual ~Reader() = default;

  [[nodiscard]] virtual Container container() const = 0;
  [[nodiscard]] virtual Endian endian() const = 0;
  // Nothing if it is a pipe.
  [[nodiscard]] virtual std::optional<FilePlaces> places() const = 0;
  [[nodiscard]] virtual const EventTable& events() const = 0;
  [[nodiscard]] virtual const Features& features() const = 0;
  [[nodiscard]] virtual const Counters& counters() const = 0;
  // Bytes read so far and in all (0 if not known), for progress.
  [[nodiscard]] virtual uint64_t position() const = 0;
  [[nodiscard]] virtual uint64_t total() const = 0;

  // The source, if it can be sought in: what is not decompressed can be read again from it at its
  // file_offset.
  [[nodiscard]] virtual FileSource* seekable_source() const = 0;

  // Pushes every record to `sink`. Events and features that records carry (pipe mode) are taken up
  // before the record is passed on. An Error is the sink's, or a failure to read at all; damage in
  // the file ends the reading and stands in ReadEnd.
  virtual Result<ReadEnd> ReadAll(RecordSink& sink) = 0;
  // The same records one by one, for who reads two recordings side by side; false when none is
  // left. What `record` points at stays where it is while its block is held.
  virtual Result<bool> Next(RawRecord& record) = 0;
};

}  // namespace stackreel::perfdata
