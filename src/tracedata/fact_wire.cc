#include "tracedata/fact_wire.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/byte_reader.h"

namespace stackreel::tracedata {

namespace {

// The numbers of facts in a file; never to be changed.
enum class FactType : uint16_t {
  kClock = 1,
  kHost = 2,
  kModule = 3,
  kLoad = 4,
  kFunction = 5,
  kThread = 6,
  kFork = 7,
  kExec = 8,
  kExit = 9,
  kPatch = 10,
  kLoss = 11,
  kEnumeration = 12,
  kFilters = 13,
};

constexpr size_t kMaxFormats = 256;    // arguments of a function
constexpr size_t kMaxNames = 1 << 16;  // of an enumeration
constexpr size_t kMaxFilters = 1 << 16;

// One list of a fact's fields serves both ways: `Wire` is FactWriter or FactReader.
class FactWriter {
 public:
  explicit FactWriter(ByteWriter& out) : out_(out) {}
  void operator()(const uint8_t& value) { out_.U8(value); }
  void operator()(const uint32_t& value) { out_.U32(value); }
  void operator()(const int32_t& value) { out_.U32(static_cast<uint32_t>(value)); }
  void operator()(const uint64_t& value) { out_.U64(value); }
  template <typename Tag>
  void operator()(const Address<Tag>& value) {
    out_.U64(value.value);
  }
  void operator()(const std::string& text) {
    const std::string_view kept = std::string_view(text).substr(0, kMaxFactText);
    out_.U32(static_cast<uint32_t>(kept.size()));
    out_.Text(kept);
  }
  void operator()(const BuildId& id) {
    out_.U8(static_cast<uint8_t>(id.bytes().size()));
    out_.Bytes(id.bytes());
  }
  void operator()(const PatchEvent::Action& action) { out_.U8(static_cast<uint8_t>(action)); }
  void operator()(const std::vector<ValueFormat>& formats) {
    const size_t n = std::min(formats.size(), kMaxFormats);
    out_.U32(static_cast<uint32_t>(n));
    for (size_t i = 0; i < n; ++i) {
      out_.U8(static_cast<uint8_t>(formats[i].kind));
      out_.U8(formats[i].bytes);
      (*this)(formats[i].name);
    }
  }
  void Enumerations(const std::vector<ValueFormat>& formats) {
    const size_t n = std::min(formats.size(), kMaxFormats);
    out_.U32(static_cast<uint32_t>(n));
    for (size_t i = 0; i < n; ++i) out_.U32(formats[i].enumeration);
  }
  void operator()(const std::vector<TraceEnumeration::Name>& names) {
    const size_t n = std::min(names.size(), kMaxNames);
    out_.U32(static_cast<uint32_t>(n));
    for (size_t i = 0; i < n; ++i) {
      out_.U64(static_cast<uint64_t>(names[i].value));
      (*this)(names[i].text);
    }
  }
  void operator()(const std::vector<FilterOption>& filters) {
    const size_t n = std::min(filters.size(), kMaxFilters);
    out_.U32(static_cast<uint32_t>(n));
    for (size_t i = 0; i < n; ++i) {
      out_.U8(static_cast<uint8_t>(filters[i].kind));
      (*this)(filters[i].text);
    }
  }

 private:
  ByteWriter& out_;
};

class FactReader {
 public:
  explicit FactReader(ByteReader& in) : in_(in) {}
  [[nodiscard]] bool ok() const { return ok_ && in_.ok(); }
  void operator()(uint8_t& value) { value = in_.U8(); }
  void operator()(uint32_t& value) { value = in_.U32(); }
  void operator()(int32_t& value) { value = in_.S32(); }
  void operator()(uint64_t& value) { value = in_.U64(); }
  template <typename Tag>
  void operator()(Address<Tag>& value) {
    value.value = in_.U64();
  }
  void operator()(std::string& text) { text = AsText(in_.Bytes(in_.U32())); }
  void operator()(BuildId& id) {
    const uint8_t size = in_.U8();
    id = BuildId(in_.Bytes(size));
  }
  void operator()(PatchEvent::Action& action) {
    const uint8_t value = in_.U8();
    ok_ = ok_ && value <= static_cast<uint8_t>(PatchEvent::Action::kDetached);
    action = static_cast<PatchEvent::Action>(value);
  }
  void operator()(std::vector<ValueFormat>& formats) {
    const uint32_t n = in_.U32();
    ok_ = ok_ && n <= kMaxFormats;
    for (uint32_t i = 0; i < n && ok(); ++i) {
      ValueFormat& format = formats.emplace_back();
      const uint8_t kind = in_.U8();
      ok_ = ok_ && kind <= static_cast<uint8_t>(ValueFormat::Kind::kNumber);
      format.kind = static_cast<ValueFormat::Kind>(kind);
      format.bytes = in_.U8();
      (*this)(format.name);
    }
  }
  // Traces of version 1 end before it.
  void Enumerations(std::vector<ValueFormat>& formats) {
    if (in_.AtEnd()) return;
    const uint32_t n = in_.U32();
    ok_ = ok_ && n == formats.size();
    for (uint32_t i = 0; i < n && ok(); ++i) formats[i].enumeration = in_.U32();
  }
  void operator()(std::vector<TraceEnumeration::Name>& names) {
    const uint32_t n = in_.U32();
    ok_ = ok_ && n <= kMaxNames;
    for (uint32_t i = 0; i < n && ok(); ++i) {
      TraceEnumeration::Name& name = names.emplace_back();
      name.value = static_cast<int64_t>(in_.U64());
      (*this)(name.text);
    }
  }
  void operator()(std::vector<FilterOption>& filters) {
    const uint32_t n = in_.U32();
    ok_ = ok_ && n <= kMaxFilters;
    for (uint32_t i = 0; i < n && ok(); ++i) {
      FilterOption& filter = filters.emplace_back();
      const uint8_t kind = in_.U8();
      ok_ = ok_ && IsFilterKind(kind);
      filter.kind = static_cast<FilterOption::Kind>(kind);
      (*this)(filter.text);
    }
  }

 private:
  ByteReader& in_;
  bool ok_ = true;
};

template <typename... Fields, typename Wire>
void Each(Wire& wire, Fields&... fields) {
  (wire(fields), ...);
}

// The fields of each fact, in the order of the file. New ones are added at the end.
template <typename Wire, typename Fact>
void Fields(Wire& wire, Fact& f) {
  using T = std::remove_const_t<Fact>;
  if constexpr (std::is_same_v<T, TraceClock>) {
    Each(wire, f.origin_ticks, f.origin_nanoseconds, f.ticks_per_second, f.realtime_offset);
  } else if constexpr (std::is_same_v<T, TraceHost>) {
    Each(wire, f.command_line, f.host_name, f.kernel, f.cpu, f.cpus, f.memory_bytes);
  } else if constexpr (std::is_same_v<T, TraceModule>) {
    Each(wire, f.id, f.path, f.build_id);
  } else if constexpr (std::is_same_v<T, ModuleLoad>) {
    Each(wire, f.pid, f.module, f.ticks, f.start, f.end, f.bias);
  } else if constexpr (std::is_same_v<T, TraceFunction>) {
    Each(wire, f.id, f.module, f.svma, f.size, f.name, f.arguments, f.returns);
    wire.Enumerations(f.arguments);
    wire.Enumerations(f.returns);
  } else if constexpr (std::is_same_v<T, TraceThread>) {
    Each(wire, f.index, f.pid, f.tid, f.comm);
  } else if constexpr (std::is_same_v<T, ProcessFork>) {
    Each(wire, f.ticks, f.pid, f.parent_pid);
  } else if constexpr (std::is_same_v<T, ProcessExec>) {
    Each(wire, f.ticks, f.pid, f.path);
  } else if constexpr (std::is_same_v<T, ProcessExit>) {
    Each(wire, f.ticks, f.pid, f.status);
  } else if constexpr (std::is_same_v<T, PatchEvent>) {
    Each(wire, f.ticks, f.pid, f.action, f.function, f.reason);
  } else if constexpr (std::is_same_v<T, TraceLoss>) {
    Each(wire, f.pid, f.reason, f.calls);
  } else if constexpr (std::is_same_v<T, TraceEnumeration>) {
    Each(wire, f.id, f.name, f.names);
  } else {
    static_assert(std::is_same_v<T, FilterChange>);
    Each(wire, f.ticks, f.pid, f.filters);
  }
}

// The alternatives of TraceFact stand in the order of FactType.
template <size_t index = 0>
std::optional<TraceFact> DecodeFact(uint16_t type, ByteReader fields, bool& known) {
  if constexpr (index == std::variant_size_v<TraceFact>) {
    known = false;
    return std::nullopt;
  } else {
    if (type != index + 1) return DecodeFact<index + 1>(type, fields, known);
    std::variant_alternative_t<index, TraceFact> fact;
    FactReader reader(fields);
    Fields(reader, fact);
    if (!reader.ok()) return std::nullopt;
    return TraceFact(std::move(fact));
  }
}

static_assert(std::variant_size_v<TraceFact> == static_cast<size_t>(FactType::kFilters));
static_assert(std::is_same_v<std::variant_alternative_t<4, TraceFact>, TraceFunction>);
static_assert(static_cast<size_t>(FactType::kFunction) == 5);

}  // namespace

void EncodeFact(const TraceFact& fact, ByteWriter& out) {
  const size_t start = out.size();
  out.U32(0);
  out.U16(static_cast<uint16_t>(fact.index() + 1));
  out.U16(0);
  FactWriter writer(out);
  std::visit([&](const auto& one) { Fields(writer, one); }, fact);
  out.PutAt(start, static_cast<uint32_t>(out.size() - start - 8));
}

std::vector<TraceFact> DecodeFacts(ByteView bytes, Counters& counters) {
  std::vector<TraceFact> facts;
  ByteReader reader(bytes);
  while (!reader.AtEnd()) {
    const uint32_t size = reader.U32();
    const uint16_t type = reader.U16();
    reader.U16();
    const ByteView fields = reader.Bytes(size);
    if (!reader.ok()) {
      counters.Add("tracedata.bad_fact");
      break;
    }
    bool known = true;
    if (std::optional<TraceFact> fact = DecodeFact(type, ByteReader(fields), known)) {
      facts.push_back(std::move(*fact));
    } else {
      counters.Add(known ? "tracedata.bad_fact" : "tracedata.unknown_fact");
    }
  }
  return facts;
}

}  // namespace stackreel::tracedata
