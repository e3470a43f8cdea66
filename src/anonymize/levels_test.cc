// Whole recordings at the levels above kAddresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "anonymize/fake_leaks.h"
#include "anonymize/verify.h"
#include "perfdata/feature_layout.h"
#include "perfdata/one_of_each.h"
#include "perfdata/record_layout.h"

namespace stackreel::anonymize {
namespace {

using fake::Bytes;
using fake::Read;
using fake::Recording;
using fake::SomeEvent;
using perfdata::Container;
using perfdata::Feature;
using perfdata::FieldInfo;
using perfdata::Mmap2;
using perfdata::RecordType;
using perfdata::Sensitivity;
using testing::EndsWith;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr uint32_t kPid = 1234, kTid = 1235;
constexpr uint64_t kText = 0x555500000000;

Options At(Level level, Container container = Container::kFile) {
  Options options;
  options.level = level;
  options.container = container;
  return options;
}

// Puts secrets into all texts that say something of machine or user, a form of them where a field
// has one.
class PlantSecrets {
 public:
  void operator()(const FieldInfo& field, std::string& text) const {
    switch (field.sensitivity) {
      case Sensitivity::kPath:
        text = "/home/secretuser/secretfolder/prog-secrethost";
        break;
      case Sensitivity::kComm:
      case Sensitivity::kHostName:
      case Sensitivity::kRelease:
      case Sensitivity::kMachine:
      case Sensitivity::kEventName:
        text = "secrettext";
        break;
      case Sensitivity::kSymbol:
        text = "f-secretuser";
        break;
      case Sensitivity::kCgroupPath:
        text = "/user.slice/secretgroup.service";
        break;
      case Sensitivity::kPayload:
        text = "secretpayload";
        break;
      default:
        break;
    }
  }
  void operator()(const FieldInfo& field, std::vector<std::string>& texts) const {
    if (field.sensitivity != Sensitivity::kCommandLine) return;
    texts = {"/home/secretuser/perf", "record", "--secretargument", "--pid=secretpid",
             "secretword"};
  }
  template <typename Other>
  void operator()(const FieldInfo&, Other&) const {}
};

template <typename Body>
Bytes FeatureWithSecrets(Body body, Endian endian) {
  perfdata::VisitFields(body, perfdata::WireScope(), PlantSecrets());
  return perfdata::EncodeFeature(body, endian);
}

std::map<uint32_t, Bytes> FeaturesWithSecrets(Endian endian) {
  std::map<uint32_t, Bytes> features;
  const auto add = [&](Feature feature, auto body) {
    features[static_cast<uint32_t>(feature)] = FeatureWithSecrets(body, endian);
  };
  add(Feature::kOsRelease, perfdata::ReleaseText());
  add(Feature::kVersion, perfdata::ReleaseText());
  add(Feature::kCpuDesc, perfdata::CpuText());
  add(Feature::kCpuId, perfdata::CpuText());
  add(Feature::kCmdline, perfdata::Cmdline());
  add(Feature::kGroupDesc, perfdata::GroupDesc{{{"", 0, 0}}});
  add(Feature::kBuildId,
      perfdata::BuildIdList{{{1, perfdata::one_of_each::SomeBuildId(), ""}}, {0}});
  features[static_cast<uint32_t>(Feature::kHostname)] =
      perfdata::EncodeString("secrethost.secretdomain", endian);
  return features;
}

// Every record there is, with secrets in it.
Bytes RecordingWithSecrets(Endian endian, Container container) {
  perfdata::Event event = SomeEvent(0);
  event.name = "secretevent";
  Recording in({event}, {.container = container, .endian = endian});
  for (const auto& records :
       {perfdata::one_of_each::KernelRecords(), perfdata::one_of_each::UserRecords()}) {
    for (perfdata::Record record : records) {
      if (record.type == static_cast<uint32_t>(RecordType::kAuxtrace)) continue;  // needs bytes
      std::visit(
          [&](auto& body) {
            perfdata::VisitFields(body, perfdata::WireScope{record.misc, nullptr}, PlantSecrets());
            in.Add(static_cast<RecordType>(record.type), body, record.misc, kPid);
          },
          record.body);
    }
  }
  return in.Finish(FeaturesWithSecrets(endian));
}

TEST(Levels, NoTextThatIdentifiesIsLeftInAnyRecordOrFeature) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    for (const Container container : {Container::kFile, Container::kPipe}) {
      const Bytes in = RecordingWithSecrets(endian, container);
      ASSERT_NE(AsText(in).find("secrethost"), std::string_view::npos);
      for (const Level level : {Level::kIdentity, Level::kSymbols}) {
        for (const Container to : {Container::kFile, Container::kPipe}) {
          const Bytes out = fake::AnonymizedBytes(in, At(level, to));
          const size_t at = AsText(out).find("secret");
          EXPECT_EQ(at, std::string_view::npos) << AsText(out).substr(at - 40, 80);
          // The name of the program is of the level above.
          const bool has_program = AsText(out).contains("prog-");
          EXPECT_EQ(has_program, level == Level::kIdentity);
        }
      }
    }
  }
}

// A process, by all who name it.
TEST(Levels, ProcessesHaveOneNewNumberEverywhere) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    Recording in({SomeEvent(0)}, {.endian = endian});
    in.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, "server"}, perfdata::kMiscCommExec, kPid);
    in.Map(kPid, kText, 0x4000, 0, "/tmp/perf-1234.map");
    in.Fork(kPid, kTid);
    in.Add(RecordType::kThreadMap, perfdata::ThreadMap{{{kPid, "server"}, {UINT64_MAX, ""}}});
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.tid = kTid;
    sample.ip = kText;
    in.AddSample(sample);
    const Read out = fake::Anonymized(in.Finish(), At(Level::kIdentity));
    const uint32_t pid = out.samples[0].pid, tid = out.samples[0].tid;
    EXPECT_NE(pid, kPid);
    EXPECT_NE(tid, kTid);
    EXPECT_EQ(out.All<perfdata::Comm>()[0].pid, pid);
    const auto exec = std::ranges::find(out.records, static_cast<uint32_t>(RecordType::kComm),
                                        &perfdata::Record::type);
    EXPECT_EQ(exec->sample_id->pid, pid);
    EXPECT_EQ(out.All<Mmap2>()[0].pid, pid);
    EXPECT_EQ(out.All<Mmap2>()[0].filename, "/tmp/perf-" + std::to_string(pid) + ".map");
    EXPECT_EQ(out.All<perfdata::Task>()[0].ppid, pid);
    EXPECT_EQ(out.All<perfdata::Task>()[0].pid, tid);
    const auto threads = out.All<perfdata::ThreadMap>();
    EXPECT_EQ(threads[0].entries[0].pid, pid);
    EXPECT_EQ(threads[0].entries[1].pid, UINT64_MAX);
    EXPECT_EQ(threads[0].entries[0].comm, out.All<perfdata::Comm>()[0].comm);
    // Its memory is where it was: the remap goes by the number of the recording.
    EXPECT_EQ(out.samples[0].ip, out.All<Mmap2>()[0].addr);
  }
}

TEST(Levels, TimesAreShiftedByOneAmountInRecordsAndFeatures) {
  const Endian endian = kNativeEndian;
  Recording in({SomeEvent(0)});
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
  in.Fork(kPid, kTid);
  in.SampleAt(kPid, kText);
  in.SampleAt(kPid, kText + 1);
  in.Add(RecordType::kTimeConv, perfdata::TimeConv{31, 1, 5, true, 4711, 7, 1, 1});
  std::map<uint32_t, Bytes> features;
  features[static_cast<uint32_t>(Feature::kSampleTime)] =
      perfdata::EncodeFeature(perfdata::SampleTime{3, 4}, endian);
  features[static_cast<uint32_t>(Feature::kClockData)] =
      perfdata::EncodeFeature(perfdata::ClockData{1, 1, 1'800'000'000'000'000'000, 3}, endian);
  Report report;
  const Bytes bytes = in.Finish(features);
  const Read out = fake::Anonymized(bytes, At(Level::kIdentity), &report);
  const uint64_t shift = out.samples[0].time - 3;
  EXPECT_GT(shift, uint64_t{1} << 60);
  EXPECT_EQ(out.samples[1].time - out.samples[0].time, 1);
  EXPECT_EQ(out.records[0].sample_id->time, 1 + shift);
  EXPECT_EQ(out.All<perfdata::Task>()[0].time, 2 + shift);
  EXPECT_EQ(out.reader->features().sample_time, (std::pair{3 + shift, 4 + shift}));
  const auto clocks = perfdata::DecodeFeatureAs<perfdata::ClockData>(
      out.reader->features().raw.at(static_cast<uint32_t>(Feature::kClockData)), endian);
  EXPECT_EQ(clocks->clockid_ns, 3 + shift);
  EXPECT_NE(clocks->wall_clock_ns, 1'800'000'000'000'000'000 + shift);
  EXPECT_NE(clocks->wall_clock_ns, 1'800'000'000'000'000'000);
  // It would tell the shift.
  EXPECT_THAT(out.All<perfdata::TimeConv>(), SizeIs(0));
  EXPECT_TRUE(report.dropped().contains({"TIME_CONV", "payload"}));
  const Read lower = fake::Anonymized(bytes);
  EXPECT_EQ(lower.samples[0].time, 3);
  EXPECT_THAT(lower.All<perfdata::TimeConv>(), SizeIs(1));
}

TEST(Levels, FilesCgroupsAndNamespacesGetOtherNumbers) {
  Recording in({SomeEvent(perfdata::kSampleCgroup)});
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");  // 8:1, inode 99, generation 7
  in.Add(RecordType::kCgroup, perfdata::Cgroup{4711, "/acme.slice"});
  in.Add(RecordType::kNamespaces, perfdata::Namespaces{kPid, kPid, {{4, 4026531840}, {4, 0}}});
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.ip = kText;
  sample.cgroup = 4711;
  in.AddSample(sample);
  const Read out = fake::Anonymized(in.Finish(), At(Level::kIdentity));
  const Mmap2 mmap = out.All<Mmap2>()[0];
  EXPECT_NE(mmap.maj, 8);
  EXPECT_NE(mmap.min, 1);
  EXPECT_NE(mmap.ino, 99);
  EXPECT_NE(mmap.ino_generation, 7);
  const perfdata::Cgroup cgroup = out.All<perfdata::Cgroup>()[0];
  EXPECT_NE(cgroup.id, 4711);
  EXPECT_EQ(out.samples[0].cgroup, cgroup.id);
  const auto links = out.All<perfdata::Namespaces>()[0].links;
  EXPECT_NE(links[0].ino, 4026531840);
  EXPECT_EQ(links[0].dev, links[1].dev);
  EXPECT_EQ(links[1].ino, 0);
}

// One number of one field tells already.
TEST(Levels, ADeviceThatKeepsItsNumberIsFound) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");  // 8:1
  in.SampleAt(kPid, kText);
  const Bytes in_bytes = in.Finish(), clean = fake::AnonymizedBytes(in_bytes, At(Level::kIdentity));
  const auto is_clean = fake::VerifyBytes(in_bytes, clean);
  ASSERT_TRUE(is_clean && is_clean->clean());
  size_t tried = 0;
  for (const fake::Spot& spot : fake::Spots(clean).all) {
    if (spot.span.info->name != "maj") continue;
    Bytes out = clean;
    StoreUnaligned(out.data() + spot.file_offset + spot.span.begin, uint32_t{8}, Endian::kLittle);
    const auto verdict = fake::VerifyBytes(in_bytes, out);
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(fake::Has(*verdict, FindingKind::kText, "MMAP2", "maj")) << fake::TextOf(*verdict);
    ++tried;
  }
  EXPECT_EQ(tried, 1);
}

// Passes all on, and has names of functions at the end.
class NamingStep : public RecordStep {
 public:
  NamingStep(const RecordingHead& head, perfdata::TimedSink& next)
      : events_(head.events), endian_(head.endian), next_(next) {}
  Status OnTimedRecord(const perfdata::TimedRecord& record) override {
    return next_.OnTimedRecord(record);
  }
  [[nodiscard]] std::vector<perfdata::Event> Events() const override { return events_; }
  Status Finish() override { return {}; }
  void CollectCounters(Counters& /*counters*/) const override {}
  [[nodiscard]] std::map<uint32_t, Bytes> Features() const override {
    const perfdata::FunctionNames names{
        1, {{"/opt/x/acmeserver", {{0x10, 4, "acme_function"}}}}, {}};
    return {{static_cast<uint32_t>(Feature::kStackreelFunctions),
             perfdata::EncodeFeature(names, endian_)}};
  }

 private:
  std::vector<perfdata::Event> events_;
  Endian endian_;
  perfdata::TimedSink& next_;
};

TEST(Levels, NamesThatAreAddedArePseudonymsToo) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, kText, 0x1000, 0, "/opt/x/acmeserver");
  in.SampleAt(kPid, kText + 0x10);
  Options options = At(Level::kSymbols);
  options.name_functions = [](const RecordingHead& head, perfdata::TimedSink& next) {
    return std::make_unique<NamingStep>(head, next);
  };
  const Read out = fake::Anonymized(in.Finish(), options);
  const auto& bytes =
      out.reader->features().raw.at(static_cast<uint32_t>(Feature::kStackreelFunctions));
  EXPECT_FALSE(AsText(bytes).contains("acme"));
  EXPECT_TRUE(AsText(bytes).contains("f_"));
}

TEST(Levels, BuildIdsGoWithTheNamesOfTheirModules) {
  const BuildId open = *BuildId::FromHex("00112233"), closed = *BuildId::FromHex("44556677");
  const auto record = [&](Level level, const std::vector<std::string>& publics) {
    Recording in({SomeEvent(0)});
    in.Add(RecordType::kMmap2,
           Mmap2{kPid, kPid, kText, 0x1000, 0, 0, 0, 0, 0, open, 5, 2, "/usr/lib/libc.so.6"},
           perfdata::kMiscMmapBuildId | 2);
    in.Add(RecordType::kMmap2,
           Mmap2{kPid, kPid, kText + 0x1000, 0x1000, 0, 0, 0, 0, 0, closed, 5, 2, "/opt/x/server"},
           perfdata::kMiscMmapBuildId | 2);
    in.Add(RecordType::kHeaderBuildId, perfdata::HeaderBuildId{-1, closed, "/opt/x/server"});
    Options options = At(level);
    options.publics.modules = publics;
    return fake::Anonymized(in.Finish(), options);
  };
  const auto maps = record(Level::kIdentity, {}).All<Mmap2>();
  EXPECT_EQ(maps[1].build_id, closed);
  EXPECT_THAT(maps[1].filename, EndsWith("/server"));
  const Read hidden = record(Level::kSymbols, {});
  EXPECT_EQ(hidden.All<Mmap2>()[0].build_id, open);
  EXPECT_EQ(hidden.All<Mmap2>()[0].filename, "/usr/lib/libc.so.6");
  EXPECT_NE(hidden.All<Mmap2>()[1].build_id, closed);
  EXPECT_THAT(hidden.All<Mmap2>()[1].filename, Not(EndsWith("/server")));
  // One of them is padded with zeros.
  EXPECT_TRUE(
      hidden.All<perfdata::HeaderBuildId>()[0].build_id.Matches(hidden.All<Mmap2>()[1].build_id));
  EXPECT_EQ(hidden.All<perfdata::HeaderBuildId>()[0].filename, hidden.All<Mmap2>()[1].filename);
  EXPECT_EQ(record(Level::kSymbols, {"server"}).All<Mmap2>()[1].build_id, closed);
}

TEST(Levels, TheSameKeyGivesTheSameNamesInAnotherRecording) {
  const auto recorded = [](const std::string& other) {
    Recording in({SomeEvent(0)});
    in.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, other}, 0, kPid);
    in.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, "server"}, 0, kPid);
    return in.Finish();
  };
  const auto comms = [](const Bytes& bytes, const Key& key) {
    const Read out(fake::AnonymizedBytes(bytes, At(Level::kIdentity), key));
    std::vector<std::string> names;
    for (const perfdata::Comm& comm : out.All<perfdata::Comm>()) names.push_back(comm.comm);
    return names;
  };
  const auto one = comms(recorded("shop"), fake::SomeKey());
  const auto two = comms(recorded("till"), fake::SomeKey());
  const auto three = comms(recorded("shop"), *Key::FromSecret(AsBytes("another secret, longer")));
  EXPECT_EQ(one[1], two[1]);
  EXPECT_NE(one[0], two[0]);
  EXPECT_NE(one[0], three[0]);
  EXPECT_NE(one[1], three[1]);
}

// Shifted times, and names that stay as they are public, are no findings.
TEST(Levels, OutputsVerify) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    Recording in({SomeEvent(0)}, {.endian = endian});
    in.Map(kPid, kText, 0x4000, 0, "/home/ann/build/server");
    in.Map(kPid, kText + 0x4000, 0x4000, 0, "/usr/lib/libc.so.6");
    in.Add(RecordType::kCgroup, perfdata::Cgroup{1, "/system.slice"});
    for (int i = 0; i < 600; ++i) in.SampleAt(kPid, kText + i);
    const std::vector<std::string> words = {"perf", "record",   "-F",          "4000",
                                            "-e",   "cycles:u", "build/server"};
    const Bytes bytes = in.Finish(
        {{static_cast<uint32_t>(Feature::kCmdline), perfdata::EncodeStringList(words, endian)},
         {static_cast<uint32_t>(Feature::kHostname), perfdata::EncodeString("annsbox", endian)}});
    for (const Level level : {Level::kIdentity, Level::kSymbols}) {
      const Bytes out = fake::AnonymizedBytes(bytes, At(level));
      MemorySource source(bytes), out_source(out);
      VerifyOptions options;
      options.level = level;
      const Result<Verdict> verdict =
          Verify(RereadableRecording(source), RereadableRecording(out_source), options);
      ASSERT_TRUE(verdict);
      EXPECT_TRUE(verdict->clean()) << verdict->findings[0].record << verdict->findings[0].value;
      // The original does not.
      EXPECT_FALSE(Verify(RereadableRecording(source), RereadableRecording(source), options)
                       .value()
                       .clean());
    }
  }
}

TEST(Levels, TheReportSaysWhatBecameOfEachField) {
  Recording in({SomeEvent(0)});
  in.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, "server"}, 0, kPid);
  in.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, "bash"}, 0, kPid);
  Report report;
  fake::Anonymized(in.Finish(), At(Level::kIdentity), &report);
  const auto& entries = report.structures().at("COMM").entries();
  ASSERT_THAT(entries, SizeIs(3));
  EXPECT_EQ(entries[0].changed, 2);  // pid
  EXPECT_EQ(entries[2].changed, 1);  // comm
  EXPECT_EQ(entries[2].kept, 1);
  EXPECT_THAT(report.Text(Level::kIdentity), StartsWith("level: identity"));
}

}  // namespace
}  // namespace stackreel::anonymize
