#include "perfdata/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "perfdata/record_layout.h"
#include "perfdata/record_size.h"

namespace stackreel::perfdata {

namespace {

constexpr uint32_t kFirstUserType = 64;  // PERF_RECORD_USER_TYPE_START
constexpr uint64_t kTrailerBits =
    kSampleTid | kSampleTime | kSampleId | kSampleStreamId | kSampleCpu | kSampleIdentifier;

// A record that some kernels only have, and only where the event asks for it: without that its
// number may mean another thing, of which nothing is known.
bool IsNotAskedFor(uint32_t type, const RecordContext& context) {
  return type == static_cast<uint32_t>(RecordType::kPtrAuth) && context.attr != nullptr &&
         !context.attr->Has(kAttrPtrAuth);
}

// Kernel records that we know end with the event's sample_id; of others all is payload.
bool HasTrailer(uint32_t type, const RecordContext& context) {
  return !IsNotAskedFor(type, context) && type >= static_cast<uint32_t>(RecordType::kMmap) &&
         type <= static_cast<uint32_t>(RecordType::kPtrAuth) && context.attr != nullptr &&
         context.attr->sample_id_all();
}

// Whether `body` was read whole.
bool DecodeBody(uint32_t type, ByteView body, Endian endian, const WireScope& scope,
                RecordBody& out) {
  if (IsNotAskedFor(type, {endian, scope.attr})) type = 0;
  ByteReader in(body, endian);
  NoTrace trace;
  return WithRecordBody(type, [&]<typename Body>() {
    DecodeFields(in, out.emplace<Body>(), scope, trace);
    return in.ok();
  });
}

std::unexpected<Error> Damaged(const RawRecord& raw, std::string_view why) {
  return std::unexpected(
      Error(ErrorKind::kDamaged, fmt::format("{} record of {} bytes: {}", RecordTypeName(raw.type),
                                             raw.bytes.size(), why))
          .AtOffset(raw.file_offset));
}

}  // namespace

size_t SampleIdSize(const Attr& attr) {
  return 8 * static_cast<size_t>(std::popcount(attr.sample_type & kTrailerBits));
}

Result<Record> DecodeRecord(const RawRecord& raw, const RecordContext& context) {
  if (raw.bytes.size() < kRecordHeaderSize) return Damaged(raw, "shorter than a record's header");
  Record record;
  record.type = raw.type;
  record.misc = raw.misc;
  const WireScope scope{raw.misc, context.attr};
  const ByteView payload = raw.payload();

  const size_t trailer_size = HasTrailer(raw.type, context) ? SampleIdSize(*context.attr) : 0;
  if (trailer_size > payload.size() ||
      !DecodeBody(raw.type, payload.first(payload.size() - trailer_size), context.endian, scope,
                  record.body)) {
    return Damaged(raw, "too short for what it says it holds");
  }
  if (HasTrailer(raw.type, context)) {
    ByteReader in(payload.last(trailer_size), context.endian);
    NoTrace trace;
    record.sample_id.emplace();
    record.sample_id->present = context.attr->sample_type & kTrailerBits;
    DecodeFields(in, *record.sample_id, scope, trace);
  }
  if (auto* tracing = std::get_if<HeaderTracingData>(&record.body)) {
    const auto size = LoadUnaligned<uint32_t>(payload.data(), context.endian);
    const ByteView bytes = raw.extra.first(std::min<size_t>(size, raw.extra.size()));
    tracing->bytes.assign(bytes.begin(), bytes.end());
  }
  return record;
}

Result<std::vector<uint8_t>> EncodeRecord(const Record& record, const RecordContext& context) {
  ByteWriter out(context.endian);
  out.U32(record.type);
  out.U16(record.misc);
  out.U16(0);
  const WireScope scope{record.misc, context.attr};
  std::visit([&](const auto& body) { EncodeFields(out, body, scope); }, record.body);
  if (HasTrailer(record.type, context)) {
    EncodeFields(out, record.sample_id.value_or(SampleId()), scope);
  }
  if (out.size() > kMaxRecordSize) {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("{} record has {} bytes, more than the {} it can have",
                            RecordTypeName(record.type), out.size(), kMaxRecordSize));
  }
  out.PutAt(6, static_cast<uint16_t>(out.size()));
  if (const auto* tracing = std::get_if<HeaderTracingData>(&record.body)) {
    out.Bytes(tracing->bytes);
    out.Zeros((8 - tracing->bytes.size() % 8) % 8);
  }
  return out.Take();
}

std::string RecordTypeName(uint32_t type) {
  switch (static_cast<RecordType>(type)) {
    case RecordType::kMmap:
      return "MMAP";
    case RecordType::kLost:
      return "LOST";
    case RecordType::kComm:
      return "COMM";
    case RecordType::kExit:
      return "EXIT";
    case RecordType::kThrottle:
      return "THROTTLE";
    case RecordType::kUnthrottle:
      return "UNTHROTTLE";
    case RecordType::kFork:
      return "FORK";
    case RecordType::kRead:
      return "READ";
    case RecordType::kSample:
      return "SAMPLE";
    case RecordType::kMmap2:
      return "MMAP2";
    case RecordType::kAux:
      return "AUX";
    case RecordType::kItraceStart:
      return "ITRACE_START";
    case RecordType::kLostSamples:
      return "LOST_SAMPLES";
    case RecordType::kSwitch:
      return "SWITCH";
    case RecordType::kSwitchCpuWide:
      return "SWITCH_CPU_WIDE";
    case RecordType::kNamespaces:
      return "NAMESPACES";
    case RecordType::kKsymbol:
      return "KSYMBOL";
    case RecordType::kBpfEvent:
      return "BPF_EVENT";
    case RecordType::kCgroup:
      return "CGROUP";
    case RecordType::kTextPoke:
      return "TEXT_POKE";
    case RecordType::kAuxOutputHwId:
      return "AUX_OUTPUT_HW_ID";
    case RecordType::kCallchainDeferred:
      return "CALLCHAIN_DEFERRED";
    case RecordType::kPtrAuth:
      return "PTR_AUTH";
    case RecordType::kHeaderAttr:
      return "HEADER_ATTR";
    case RecordType::kHeaderEventType:
      return "HEADER_EVENT_TYPE";
    case RecordType::kHeaderTracingData:
      return "HEADER_TRACING_DATA";
    case RecordType::kHeaderBuildId:
      return "HEADER_BUILD_ID";
    case RecordType::kFinishedRound:
      return "FINISHED_ROUND";
    case RecordType::kIdIndex:
      return "ID_INDEX";
    case RecordType::kAuxtraceInfo:
      return "AUXTRACE_INFO";
    case RecordType::kAuxtrace:
      return "AUXTRACE";
    case RecordType::kAuxtraceError:
      return "AUXTRACE_ERROR";
    case RecordType::kThreadMap:
      return "THREAD_MAP";
    case RecordType::kCpuMap:
      return "CPU_MAP";
    case RecordType::kStatConfig:
      return "STAT_CONFIG";
    case RecordType::kStat:
      return "STAT";
    case RecordType::kStatRound:
      return "STAT_ROUND";
    case RecordType::kEventUpdate:
      return "EVENT_UPDATE";
    case RecordType::kTimeConv:
      return "TIME_CONV";
    case RecordType::kHeaderFeature:
      return "HEADER_FEATURE";
    case RecordType::kCompressed:
      return "COMPRESSED";
    case RecordType::kFinishedInit:
      return "FINISHED_INIT";
    case RecordType::kCompressed2:
      return "COMPRESSED2";
    case RecordType::kBpfMetadata:
      return "BPF_METADATA";
    case RecordType::kSchedstatCpu:
      return "SCHEDSTAT_CPU";
    case RecordType::kSchedstatDomain:
      return "SCHEDSTAT_DOMAIN";
  }
  if (type == kRecordTypePacMask) return "STACKREEL_PAC_MASK";
  return fmt::format("TYPE_{}", type);
}

}  // namespace stackreel::perfdata
