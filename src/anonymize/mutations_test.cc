// Each rule of anonymising left out, one field of one structure at a time: what stood in it in IN
// is put back into OUT, and verification must see it. The table of fields is the schema's, so that
// a field that is added with a class that is hidden fails here until it is in a recording below.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <any>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "anonymize/fake_leaks.h"
#include "perfdata/attr_layout.h"
#include "perfdata/record_layout.h"
#include "perfdata/sample_layout.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of
using perfdata::FieldInfo;
using perfdata::Sensitivity;

using Field = std::pair<std::string, std::string>;  // structure, name

bool IsHidden(Level level, Sensitivity sensitivity) {
  return TreatmentOf(level, sensitivity) != Treatment::kKeep;
}

// ---- a recording in which every field has something to hide ----

// Texts with an address in them, and at the levels above with what is private; numbers, no two the
// same.
class Plant {
 public:
  explicit Plant(Level level, uint64_t& number) : level_(level), number_(number) {}
  template <std::integral N>
  void operator()(const FieldInfo& field, N& value) {
    switch (field.sensitivity) {
      case Sensitivity::kCodeAddress:
        value = static_cast<N>(Places().text + 0x10);
        break;
      case Sensitivity::kPid:
      case Sensitivity::kFileId:
      case Sensitivity::kTime:
      case Sensitivity::kWallTime:
      case Sensitivity::kCycles:
      case Sensitivity::kMachine:
        value = static_cast<N>(number_ += 7);
        break;
      default:
        break;
    }
  }
  void operator()(const FieldInfo& field, std::string& text) {
    if (!IsHidden(level_, field.sensitivity)) return;
    text = TextOfClass(field.sensitivity);
  }
  void operator()(const FieldInfo& field, std::vector<std::string>& texts) {
    if (IsHidden(level_, field.sensitivity)) texts = {"perf", TextOfClass(field.sensitivity)};
  }
  void operator()(const FieldInfo& field, std::vector<uint64_t>& numbers) {
    if (field.sensitivity != Sensitivity::kCodeAddress) return;
    numbers = {perfdata::kContextUser, Places().text + 0x20};
  }
  void operator()(const FieldInfo&, perfdata::Bitmap& bitmap) { bitmap = {64, {0x5e}}; }
  template <typename Other>
  void operator()(const FieldInfo&, Other&) {}

 private:
  [[nodiscard]] std::string TextOfClass(Sensitivity sensitivity) const {
    if (level_ == Level::kAddresses) return "0x555500000010";
    switch (sensitivity) {
      case Sensitivity::kPath:
        return "/home/ilse/verysecret/modulename";
      case Sensitivity::kCgroupPath:
        return "/user.slice/verysecret.service";
      case Sensitivity::kRelease:
        return "6.1.0-13-verysecret";
      case Sensitivity::kMachine:
        return "Intel(R) Verysecret 9";
      default:
        return "verysecret-ilse";
    }
  }

  Level level_;
  uint64_t& number_;
};

perfdata::Event EventOfAll(uint64_t id) {
  using namespace perfdata;  // NOLINT(google-build-using-namespace): bits
  Event event = SomeEvent(kSampleAddr | kSampleCallchain | kSampleRaw | kSampleBranchStack |
                              kSampleRegsUser | kSampleStackUser | kSampleRegsIntr |
                              kSamplePhysAddr | kSampleAux | kSampleCgroup | kSamplePeriod,
                          id);
  event.attr.sample_regs_user = event.attr.sample_regs_intr = 1;
  event.attr.sample_stack_user = 8;
  event.attr.aux_sample_size = 8;
  return event;
}

std::vector<perfdata::Event> Events() {
  perfdata::Event breakpoint = SomeEvent(0, 101), probe = SomeEvent(0, 102);
  breakpoint.attr.type = perfdata::kTypeBreakpoint;
  breakpoint.attr.config1 = Places().text + 8;
  probe.attr.type = 30;  // of a PMU that the recording does not name
  probe.attr.config = probe.attr.config1 = probe.attr.config2 = probe.attr.config3 =
      probe.attr.config4 = Places().kernel + 8;
  probe.attr.sig_data = Places().text + 8;
  probe.attr.tail = Bytes(8, 1);
  probe.attr.size = 152;
  std::vector<perfdata::Event> events = {EventOfAll(100), breakpoint, probe};
  for (perfdata::Event& event : events) event.name = "verysecret-ilse/mem:0x555500000010/";
  return events;
}

template <typename Body>
void AddFeature(std::map<uint32_t, Bytes>& features, Feature feature, Body body, Level level,
                uint64_t& number) {
  perfdata::VisitFields(body, perfdata::WireScope(), Plant(level, number));
  features[static_cast<uint32_t>(feature)] = perfdata::EncodeFeature(body, Endian::kLittle);
}

std::map<uint32_t, Bytes> Features(Level level, uint64_t& number) {
  using namespace perfdata;  // NOLINT(google-build-using-namespace): all features
  std::map<uint32_t, Bytes> out;
  const auto add = [&](Feature feature, auto body) {
    AddFeature(out, feature, std::move(body), level, number);
  };
  add(Feature::kTracingData, perfdata::TracingData{{1, 2, 3, 4, 5, 6, 7, 8}});
  add(Feature::kBuildId, BuildIdList{{{7, *BuildId::FromHex("aabbccddeeff00112233"), "/x"}}, {0}});
  add(Feature::kHostname, HostName());
  add(Feature::kOsRelease, ReleaseText());
  add(Feature::kVersion, ReleaseText());
  add(Feature::kCpuDesc, CpuText());
  add(Feature::kCpuId, CpuText());
  add(Feature::kTotalMem, TotalMem());
  add(Feature::kCmdline, Cmdline());
  add(Feature::kGroupDesc, GroupDesc{{{"", 0, 0}}});
  add(Feature::kSampleTime, perfdata::SampleTime());
  add(Feature::kNumaTopology, NumaTopology{{{0, 1, 1, "0"}}});
  add(Feature::kMemTopology, MemTopology{1, 4096, {{0, 1, {}}}});
  add(Feature::kClockData, ClockData{1, 1, 0, 0});
  add(Feature::kBpfProgInfo, BpfProgInfos{{{1, {1, 2}, {3}}}});
  add(Feature::kBpfBtf, BtfBlobs{{{1, {1, 2, 3}}}});
  add(Feature::kStackreelFunctions,
      FunctionNames{1, {{"", {{0x10, 8, ""}}}}, {{"", {{Places().kernel + 0x10, 8, ""}}}}});
  return out;
}

Bytes MakeIn(Level level) {
  uint64_t number = 100'000;
  Recording in(Events(), {.endian = Endian::kLittle});
  in.MapKernel(Places().kernel, 0x1000000, Places().kernel, "[kernel.kallsyms]_text");
  in.Map(kPid, Places().text, 0x4000, 0, "/bin/prog");
  in.Map(kPid, Places().heap, 0x21000, Places().heap, "[heap]");
  for (int twice = 0; twice < 2; ++twice) {
    for (const auto& records :
         {perfdata::one_of_each::KernelRecords(), perfdata::one_of_each::UserRecords()}) {
      for (perfdata::Record record : records) {
        const auto type = static_cast<RecordType>(record.type);
        if (type == RecordType::kAuxtrace || type == RecordType::kHeaderAttr) continue;
        std::visit(
            [&](auto& body) {
              perfdata::VisitFields(body, perfdata::WireScope{record.misc, nullptr},
                                    Plant(level, number));
              in.Add(type, body, record.misc, kPid + static_cast<uint32_t>(twice));
            },
            record.body);
      }
    }
    in.Add(RecordType::kSchedstatDomain, perfdata::Opaque{{1, 2, 3, 4}});
    const Bytes chain = Words({perfdata::kContextUser, Places().text + 1}, Endian::kLittle);
    const Bytes branches = Words({Places().text + 1, Places().text + 2, 0}, Endian::kLittle);
    const Bytes word = Words({0x1122334455667788}, Endian::kLittle);
    perfdata::Sample sample;
    sample.pid = kPid + static_cast<uint32_t>(twice);
    sample.tid = sample.pid + 1000;
    sample.cgroup = 70'000 + static_cast<uint32_t>(twice);
    sample.ip = Places().text + 1;
    sample.addr = Places().heap + 8;
    sample.phys_addr = 0x12345000;
    sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
    sample.branches = perfdata::BranchArray(branches, Endian::kLittle);
    sample.raw = ByteView(word).first(4);
    sample.stack_user = sample.aux = word;
    sample.stack_user_size = 8;
    sample.regs_user.abi = 2;
    sample.regs_user.mask = 1;
    sample.regs_user.values = perfdata::U64Array(word, Endian::kLittle);
    sample.regs_intr = sample.regs_user;
    in.AddSample(sample);
  }
  return in.Finish(Features(level, number));
}

// ---- OUT with a field of IN's ----

// The values of a visit, to be put into another of the same shape.
struct Take {
  std::vector<std::any> values;
  template <typename M>
  void operator()(const FieldInfo&, M& value) {
    values.emplace_back(value);
  }
};
class PutBack {
 public:
  PutBack(const std::vector<std::any>& values, std::string_view name)
      : values_(values), name_(name) {}
  template <typename M>
  void operator()(const FieldInfo& field, M& value) {
    if (at_ >= values_.size()) return;
    const M* const was = std::any_cast<M>(&values_[at_++]);
    if (was != nullptr && field.name == name_) value = *was;
  }

 private:
  const std::vector<std::any>& values_;
  std::string_view name_;
  size_t at_ = 0;
};

template <typename T>
void PutFieldBack(T was, T& is, const perfdata::WireScope& scope, std::string_view name) {
  Take take;
  perfdata::VisitFields(was, scope, take);
  perfdata::VisitFields(is, scope, PutBack(take.values, name));
}

// An EVENT_UPDATE is one of several kinds of record.
std::pair<uint32_t, uint64_t> KindOf(const perfdata::Record& record) {
  const auto* update = std::get_if<perfdata::EventUpdate>(&record.body);
  return {record.type, update == nullptr ? 0 : update->type};
}

bool HasField(const perfdata::Record& record, const Field& field) {
  bool has = false;
  const perfdata::WireScope scope{record.misc, nullptr};
  std::visit(
      [&](const auto& body) {
        perfdata::VisitFields(
            body, scope, [&](const FieldInfo& of, const auto&) { has |= of.name == field.second; });
      },
      record.body);
  return has && perfdata::RecordTypeName(record.type) == field.first;
}

class Mutation {
 public:
  Mutation(const Bytes& in, const Bytes& out) : in_(in), out_(out) {
    for (const perfdata::Record& record : in_.records) in_of_[KindOf(record)].push_back(&record);
    for (const perfdata::Record& record : out_.records) ++out_counts_[KindOf(record)];
  }
  // OUT where `field` is as in IN, in all that have it.
  Bytes Without(const Field& field);

 private:
  std::vector<perfdata::Event> EventsWithout(const Field& field);
  perfdata::Record RecordWithout(const perfdata::Record& was, perfdata::Record is,
                                 const Field& field) const;
  std::map<uint32_t, Bytes> FeaturesWithout(const Field& field) const;

  Read in_, out_;
  std::map<std::pair<uint32_t, uint64_t>, std::vector<const perfdata::Record*>> in_of_;
  std::map<std::pair<uint32_t, uint64_t>, size_t> out_counts_;
};

std::vector<perfdata::Event> Mutation::EventsWithout(const Field& field) {
  std::vector<perfdata::Event> events = out_.reader->events().events();
  const auto& was = in_.reader->events().events();
  for (size_t i = 0; i < events.size(); ++i) {
    if (field.first == "attr") {
      PutFieldBack(was[i].attr, events[i].attr, perfdata::WireScope(), field.second);
    } else if (field.first == "feature EVENT_DESC" && field.second == "name") {
      events[i].name = was[i].name;
    } else if (field.first == "SAMPLE") {
      const uint64_t bits = was[i].attr.sample_type & perfdata::SampleBitsWith([&](const auto& of) {
                              return of.name == field.second;
                            });
      perfdata::Attr& attr = events[i].attr;
      attr.sample_type |= bits;
      if ((bits & perfdata::kSampleRegsUser) != 0) attr.sample_regs_user = 1;
      if ((bits & perfdata::kSampleRegsIntr) != 0) attr.sample_regs_intr = 1;
      if ((bits & perfdata::kSampleStackUser) != 0) attr.sample_stack_user = 8;
    }
  }
  return events;
}

perfdata::Record Mutation::RecordWithout(const perfdata::Record& was, perfdata::Record is,
                                         const Field& field) const {
  const perfdata::Attr& attr = in_.reader->events().events()[0].attr;
  const perfdata::WireScope scope{is.misc, &attr};
  if (perfdata::RecordTypeName(is.type) == field.first) {
    std::visit(
        [&]<typename Body>(Body& body) {
          if (const auto* old = std::get_if<Body>(&was.body)) {
            PutFieldBack(*old, body, scope, field.second);
          }
        },
        is.body);
  }
  if (field.first == "sample_id" && is.sample_id && was.sample_id) {
    PutFieldBack(*was.sample_id, *is.sample_id, scope, field.second);
  }
  return is;
}

std::map<uint32_t, Bytes> Mutation::FeaturesWithout(const Field& field) const {
  std::map<uint32_t, Bytes> features = out_.reader->features().raw;
  features.erase(static_cast<uint32_t>(Feature::kEventDesc));
  for (const auto& [feature, bytes] : in_.reader->features().raw) {
    if ("feature " + perfdata::FeatureName(feature) != field.first) continue;
    if (static_cast<Feature>(feature) == Feature::kEventDesc) continue;
    if (!features.contains(feature)) {
      features[feature] = bytes;
      continue;
    }
    perfdata::WithFeatureBody(feature, [&]<typename Body>() {
      const auto was = perfdata::DecodeFeatureAs<Body>(bytes, Endian::kLittle);
      auto is = perfdata::DecodeFeatureAs<Body>(features[feature], Endian::kLittle);
      if (!was || !is) return;
      PutFieldBack(*was, *is, perfdata::WireScope(), field.second);
      features[feature] = perfdata::EncodeFeature(*is, Endian::kLittle);
    });
  }
  return features;
}

Bytes Mutation::Without(const Field& field) {
  MemorySink sink(true);
  auto writer = *perfdata::Writer::Create(sink, {.endian = Endian::kLittle}, EventsWithout(field));
  std::map<std::pair<uint32_t, uint64_t>, size_t> at;
  for (const perfdata::Record& record : out_.records) {
    const auto& was = in_of_[KindOf(record)];
    const size_t i = at[KindOf(record)]++;
    const bool correspond = was.size() == out_counts_[KindOf(record)];
    EXPECT_TRUE(writer->WriteRecord(correspond ? RecordWithout(*was[i], record, field) : record));
  }
  // Those of a kind that goes whole.
  for (const auto& [kind, records] : in_of_) {
    if (records.size() == out_counts_[kind]) continue;
    for (const perfdata::Record* record : records) {
      if (!HasField(*record, field)) continue;
      EXPECT_TRUE(writer->WriteRecord(*record));
    }
  }
  for (size_t i = 0; i < out_.samples.size(); ++i) {
    perfdata::Sample sample = out_.samples[i];
    if (field.first == "SAMPLE") {
      PutFieldBack(in_.samples[i], sample,
                   perfdata::WireScope{0, &in_.reader->events().events()[0].attr}, field.second);
    }
    EXPECT_TRUE(writer->WriteSample(sample, 2, 0));
  }
  EXPECT_TRUE(writer->Finish(FeaturesWithout(field)));
  return sink.bytes();
}

// Not mutated here, and why.
const std::map<Field, std::string>& Others() {
  static const std::map<Field, std::string> kOthers = {
      {{"HEADER_ATTR", "attr"}, "in pipes: verify_out_test"},
      {{"feature EVENT_DESC", "attr"}, "the same attrs as the file's: attr"},
      {{"HEADER_FEATURE", "bytes"}, "in pipes: feature by feature"},
      {{"COMPRESSED", "payload"}, "unpacked by the reader"},
      {{"COMPRESSED2", "payload"}, "unpacked by the reader"},
      {{"AUXTRACE", "reference"}, "goes with its bytes"},
      {{"AUXTRACE", "tid"}, "goes with its bytes"},
  };
  return kOthers;
}

class Mutations : public testing::TestWithParam<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, Mutations,
                         testing::Values(Level::kAddresses, Level::kIdentity, Level::kSymbols));

TEST_P(Mutations, EachHiddenFieldThatStaysIsFound) {
  const Level level = GetParam();
  const Bytes in = MakeIn(level);
  Options options;
  options.level = level;
  const Bytes out = AnonymizedBytes(in, options);
  const auto clean = VerifyBytes(in, out);
  ASSERT_TRUE(clean);
  ASSERT_TRUE(clean->clean()) << fake::TextOf(*clean);
  Mutation mutation(in, out);
  const auto rewritten = VerifyBytes(in, mutation.Without({"nothing", ""}));
  ASSERT_TRUE(rewritten);
  ASSERT_TRUE(rewritten->clean()) << fake::TextOf(*rewritten);

  std::set<Field> tried;
  for (const perfdata::SchemaRow& row : perfdata::SchemaRows()) {
    const Field field = {row.structure, std::string(row.field.name)};
    if (!IsHidden(level, row.field.sensitivity) || Others().contains(field)) continue;
    if (!tried.insert(field).second) continue;
    const auto verdict = VerifyBytes(in, mutation.Without(field));
    const bool found = !verdict || std::ranges::any_of(verdict->findings, [&](const Finding& f) {
      return field.first != "SAMPLE" || f.record == "SAMPLE";
    });
    EXPECT_TRUE(found) << field.first << "." << field.second << " at " << LevelName(level);
  }
  EXPECT_GE(tried.size(), 50);
}

}  // namespace
}  // namespace stackreel::anonymize
