#include "tracedata/control_message.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace stackreel::tracedata {

namespace {

constexpr uint32_t kMagic = 0x4d435253;  // "SRCM"
constexpr uint16_t kIsRequest = 1;
constexpr uint16_t kIsAnswer = 2;

void PutText(ByteWriter& writer, std::string_view text) {
  writer.U32(static_cast<uint32_t>(text.size()));
  writer.Text(text);
}
std::string TakeText(ByteReader& reader) { return std::string(AsText(reader.Bytes(reader.U32()))); }

ByteWriter Begin(uint16_t what) {
  ByteWriter writer(Endian::kLittle);
  writer.U32(kMagic);
  writer.U16(kControlVersion);
  writer.U16(what);
  return writer;
}

Result<ByteReader> Open(ByteView bytes, uint16_t what) {
  ByteReader reader(bytes, Endian::kLittle);
  const bool is_ours = reader.U32() == kMagic;
  const uint16_t version = reader.U16();
  if (!reader.ok() || !is_ours) {
    return Fail(ErrorKind::kDamaged, "that is no message of stackreel's");
  }
  if (version != kControlVersion) {
    return Fail(
        Error(ErrorKind::kUnsupported,
              fmt::format("the trace is another version's of stackreel (message {}, {} here)",
                          version, kControlVersion))
            .WithCure("use the stackreel that traces it"));
  }
  if (reader.U16() != what || !reader.ok()) {
    return Fail(ErrorKind::kDamaged, "that is not the message that was expected");
  }
  return reader;
}

Status End(const ByteReader& reader) {
  if (reader.ok() && reader.AtEnd()) return {};
  return Fail(ErrorKind::kDamaged, "a control message is cut short, or too long");
}

}  // namespace

uint64_t ControlAnswer::Find(std::string_view group, std::string_view name) const {
  for (const ControlCount& count : counts) {
    if (count.group == group && count.name == name) return count.value;
  }
  return 0;
}

std::vector<uint8_t> Encode(const ControlRequest& request) {
  ByteWriter writer = Begin(kIsRequest);
  writer.U8(static_cast<uint8_t>(request.kind));
  writer.U32(static_cast<uint32_t>(request.patterns.size()));
  for (const ControlPattern& pattern : request.patterns) {
    writer.U8(pattern.patch ? 1 : 0);
    PutText(writer, pattern.text);
  }
  writer.U32(static_cast<uint32_t>(request.filters.size()));
  for (const FilterOption& filter : request.filters) {
    writer.U8(static_cast<uint8_t>(filter.kind));
    PutText(writer, filter.text);
  }
  return writer.Take();
}

std::vector<uint8_t> Encode(const ControlAnswer& answer) {
  ByteWriter writer = Begin(kIsAnswer);
  writer.U8(answer.error ? 1 : 0);
  if (answer.error) {
    writer.U8(static_cast<uint8_t>(answer.error->kind));
    PutText(writer, answer.error->message);
    PutText(writer, answer.error->cure);
  }
  writer.U32(static_cast<uint32_t>(answer.counts.size()));
  for (const ControlCount& count : answer.counts) {
    PutText(writer, count.group);
    PutText(writer, count.name);
    writer.U64(count.value);
  }
  return writer.Take();
}

Result<ControlRequest> DecodeRequest(ByteView bytes) {
  TRY_ASSIGN(ByteReader reader, Open(bytes, kIsRequest));
  ControlRequest request;
  const uint8_t kind = reader.U8();
  if (kind < static_cast<uint8_t>(ControlRequest::Kind::kChange) ||
      kind > static_cast<uint8_t>(ControlRequest::Kind::kFilter)) {
    return Fail(ErrorKind::kDamaged, fmt::format("there is no request of kind {}", kind));
  }
  request.kind = static_cast<ControlRequest::Kind>(kind);
  const uint32_t patterns = reader.U32();
  for (uint32_t i = 0; i < patterns && reader.ok(); ++i) {
    const uint8_t patch = reader.U8();
    if (patch > 1) return Fail(ErrorKind::kDamaged, "a pattern is neither to patch nor to unpatch");
    request.patterns.push_back({patch == 1, TakeText(reader)});
  }
  const uint32_t filters = reader.U32();
  for (uint32_t i = 0; i < filters && reader.ok(); ++i) {
    const uint8_t filter = reader.U8();
    if (!IsFilterKind(filter)) {
      return Fail(ErrorKind::kDamaged, fmt::format("there is no filter of kind {}", filter));
    }
    request.filters.push_back({static_cast<FilterOption::Kind>(filter), TakeText(reader)});
  }
  TRY(End(reader));
  return request;
}

Result<ControlAnswer> DecodeAnswer(ByteView bytes) {
  TRY_ASSIGN(ByteReader reader, Open(bytes, kIsAnswer));
  ControlAnswer answer;
  const uint8_t has_error = reader.U8();
  if (has_error > 1) return Fail(ErrorKind::kDamaged, "an answer is neither good nor bad");
  if (has_error == 1) {
    const uint8_t kind = reader.U8();
    if (kind > static_cast<uint8_t>(ErrorKind::kInterrupted)) {
      return Fail(ErrorKind::kDamaged, fmt::format("there is no error of kind {}", kind));
    }
    Error error(static_cast<ErrorKind>(kind), TakeText(reader));
    error.cure = TakeText(reader);
    answer.error = std::move(error);
  }
  const uint32_t counts = reader.U32();
  for (uint32_t i = 0; i < counts && reader.ok(); ++i) {
    ControlCount count;
    count.group = TakeText(reader);
    count.name = TakeText(reader);
    count.value = reader.U64();
    answer.counts.push_back(std::move(count));
  }
  TRY(End(reader));
  return answer;
}

}  // namespace stackreel::tracedata
