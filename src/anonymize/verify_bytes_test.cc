// Verification kind (b): original values, wherever they stand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_leaks.h"
#include "anonymize/verify.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

class VerifyBytesEach : public VerifyEach {};
INSTANTIATE_TEST_SUITE_P(All, VerifyBytesEach, kEach);

TEST_P(VerifyBytesEach, HexInTextsIsFound) {
  const auto of = [&](const std::string& word) {
    Leak leak;
    leak.features[static_cast<uint32_t>(Feature::kCmdline)] =
        perfdata::EncodeStringList({"perf", word}, endian());
    const Verdict verdict = Of(leak);
    return std::ranges::any_of(verdict.findings, [](const Finding& f) {
      return f.kind == FindingKind::kOriginalValue && f.field == "words";
    });
  };
  EXPECT_TRUE(of("mem:0x555500000010:rw"));
  EXPECT_TRUE(of("7F0000A00000"));
  EXPECT_TRUE(of("0000555500000010"));
  EXPECT_TRUE(of("ffffffff9a000010+4"));
  EXPECT_TRUE(of("0x555500000"));  // its page
  EXPECT_FALSE(of("555500000"));   // may be anything
  EXPECT_FALSE(of("mem:0x345678901234:rw"));
}

TEST_P(VerifyBytesEach, TheNumberOfAPageIsFoundAmongBytes) {
  constexpr uint64_t kPage = 4096;
  const auto is_found = [&](uint64_t number) {
    Bytes id(20, 0x77);
    StoreUnaligned(id.data() + 5, number, endian());
    const std::vector<perfdata::HeaderBuildId> ids = {{-1, BuildId(id), "/bin/prog"}};
    Leak leak;
    leak.features[static_cast<uint32_t>(Feature::kBuildId)] =
        *perfdata::EncodeBuildIds(ids, {0}, endian());
    return TextOf(Of(leak)).contains("the number of a page of");
  };
  for (const uint64_t number : {Places().text / kPage, Places().kernel / kPage + 7}) {
    EXPECT_TRUE(is_found(number));
    EXPECT_TRUE(is_found(std::byteswap(number)));
  }
  EXPECT_FALSE(is_found(Places().text / kPage + 0x400));
}

TEST_P(VerifyBytesEach, WhatAMappingMovedByIsFound) {
  for (const uint64_t move : {kMoved.text - Places().text, Places().text - kMoved.text,
                              kMoved.kernel - Places().kernel}) {
    const Leak leak = {
        .more = [&](Recording& r) { r.Add(RecordType::kAux, perfdata::Aux{move, 0, 0}); }};
    const Leak none = {
        .more = [&](Recording& r) { r.Add(RecordType::kAux, perfdata::Aux{0, 0, 0}); }};
    EXPECT_TRUE(Has(Of(leak, none), FindingKind::kOriginalValue, "AUX", "aux_offset"));
  }
}

TEST_P(VerifyBytesEach, ATimeThatIsAnAddressIsFound) {
  const auto fork = [](uint64_t time) {
    return Leak{.more = [time](Recording& r) {
      r.Add(RecordType::kFork, perfdata::Task{11, kPid, 11, kPid, time});
    }};
  };
  EXPECT_TRUE(Has(Of(fork(Places().text), fork(20)), FindingKind::kOriginalValue, "FORK", "time"));
  // That is when it was, whatever it looks like.
  EXPECT_TRUE(Of(fork(Places().text), fork(Places().text)).clean());
}

TEST_P(VerifyBytesEach, AnOriginalAddressIsFoundInEveryFieldOfEveryRecord) {
  const Bytes in = Everything(options());
  Options anonymize;
  anonymize.container = options().container;
  const Bytes clean = fake::AnonymizedBytes(in, anonymize);
  const auto good = VerifyBytes(in, clean);
  ASSERT_TRUE(good);
  ASSERT_TRUE(good->clean()) << TextOf(*good);

  size_t planted = 0;
  for (const Spot& spot : Spots(clean).all) {
    const FieldSpan& span = spot.span;
    const bool is_bytes = span.form == FieldForm::kBytes;
    if (span.end - span.begin < 8 || (!is_bytes && span.width != 8)) continue;
    for (const bool swapped : {false, true}) {
      if (swapped && span.info->sensitivity == perfdata::Sensitivity::kTime) continue;
      Bytes out = clean;
      const size_t at = span.end - 8;
      const Endian order =
          swapped == (endian() == Endian::kLittle) ? Endian::kBig : Endian::kLittle;
      StoreUnaligned(out.data() + spot.file_offset + at, Places().text + 0x10, order);
      ++planted;
      VerifyOptions verify;
      verify.findings_kept = 1000;
      const auto verdict = VerifyBytes(in, out, verify);
      if (!verdict) continue;  // it damages the recording: nothing is given away either
      const bool found = std::ranges::any_of(verdict->findings, [&](const Finding& f) {
        const bool is_sample_time = spot.record == "SAMPLE" && span.info->name == "time";
        return f.file_offset == spot.file_offset && (f.offset == at || is_sample_time);
      });
      EXPECT_TRUE(found) << spot.record << " " << span.info->name << (swapped ? " swapped" : "")
                         << "\n"
                         << TextOf(*verdict);
    }
  }
  EXPECT_GT(planted, 100);
}

// A number that happens to be as great as an address is none: it was so in IN, in the same field.
TEST_P(VerifyBytesEach, WhatIsNoAddressMayLookLikeOne) {
  using perfdata::Sensitivity;
  const auto is_number = [](const FieldSpan& span) {
    switch (span.info->sensitivity) {
      case Sensitivity::kNone:
      case Sensitivity::kPid:
      case Sensitivity::kFileId:
      case Sensitivity::kCycles:
      case Sensitivity::kMachine:
      case Sensitivity::kWallTime:
        return span.form == FieldForm::kNumbers && span.width == 8;
      default:
        return false;
    }
  };
  const Bytes plain = Everything(options());
  size_t planted = 0;
  for (const Spot& spot : Spots(plain).all) {
    if (!is_number(spot.span)) continue;
    Bytes in = plain;
    StoreUnaligned(in.data() + spot.file_offset + spot.span.end - 8, Places().text + 0x10,
                   endian());
    for (const Level level : {Level::kAddresses, Level::kIdentity}) {
      MemorySource source(in);
      MemorySink sink(options().container == Container::kFile);
      Options anonymize;
      anonymize.level = level;
      anonymize.container = options().container;
      // As a count of what follows it damages the recording.
      if (!Anonymize(RereadableRecording(source), sink, SomeKey(), anonymize)) continue;
      ++planted;
      const auto verdict = VerifyBytes(in, sink.bytes());
      ASSERT_TRUE(verdict);
      EXPECT_TRUE(verdict->clean()) << spot.record << " " << spot.span.info->name << "\n"
                                    << TextOf(*verdict);
    }
  }
  EXPECT_GT(planted, 40);
}

TEST_P(VerifyBytesEach, TheSameNumberInAnotherFieldIsFound) {
  const auto time_conv = [](uint64_t zero, uint64_t cycles) {
    return Leak{.more = [=](Recording& r) {
      perfdata::TimeConv conv;
      conv.zero = zero;
      conv.has_cycles = true;
      conv.cycles = cycles;
      r.Add(RecordType::kTimeConv, conv);
    }};
  };
  const uint64_t address = Places().text + 0x10;
  EXPECT_TRUE(Of(time_conv(address, 5), time_conv(address, 5)).clean());
  EXPECT_TRUE(Of(time_conv(5, address), time_conv(5, address)).clean());
  const Verdict other = Of(time_conv(5, address), time_conv(address, 5));
  EXPECT_TRUE(Has(other, FindingKind::kOriginalValue, "TIME_CONV", "cycles")) << TextOf(other);
  // One that IN has nowhere, as often as it stands there.
  const Leak twice = {.more = [=](Recording& r) {
    for (int i = 0; i < 2; ++i) time_conv(address, 5).more(r);
  }};
  const Verdict all = Of(twice, time_conv(5, 5));
  ASSERT_FALSE(all.groups.empty());
  EXPECT_EQ(all.groups[0].count, 2);
}

// Events, whose ids and attrs stand in several places and in samples.
TEST_P(VerifyBytesEach, AnEventsNumbersMayLookLikeAddresses) {
  const auto make = [&](const Places& at, uint64_t id, uint64_t config1) {
    perfdata::Event event = SomeEvent(0, id);
    event.attr.type = perfdata::kTypeRaw;
    event.attr.sample_period_or_freq = Places().libc + 5;
    event.attr.config1 = config1;
    Recording out({event}, options());
    out.Map(kPid, at.text, 0x4000, 0, "/bin/prog");
    out.Map(kPid, at.libc, 0x200000, 0, "/lib/libc.so.6");
    out.SampleAt(kPid, at.text);
    return out.Finish();
  };
  const uint64_t address = Places().text + 0x10;
  const Bytes in = make({}, address, address);
  const auto same = VerifyBytes(in, make(kMoved, address, address));
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->clean()) << TextOf(*same);
  const auto other = VerifyBytes(make({}, address, 0), make(kMoved, address, address));
  ASSERT_TRUE(other);
  const bool is_file = options().container == Container::kFile;
  for (const std::string_view record :
       {is_file ? "feature EVENT_DESC" : "HEADER_FEATURE", is_file ? "attr" : "HEADER_ATTR"}) {
    EXPECT_TRUE(Has(*other, FindingKind::kOriginalValue, record, "attr")) << TextOf(*other);
  }
}

TEST_P(VerifyBytesEach, AShiftedTimeThatIsAnAddressIsFound) {
  const auto fork = [](uint64_t time) {
    return Leak{.more = [time](Recording& r) {
      r.Add(RecordType::kFork, perfdata::Task{11, kPid, 11, kPid, time});
    }};
  };
  VerifyOptions verify;
  verify.level = Level::kIdentity;
  EXPECT_TRUE(Has(Of(fork(Places().text), fork(Places().text), verify), FindingKind::kOriginalValue,
                  "FORK", "time"));
}

// Between the records of a file: its attrs, and every byte of its features.
TEST(VerifyBytes, AnOriginalAddressIsFoundInAttrsAndFeatures) {
  const perfdata::WriterOptions options;
  const Bytes in = Everything(options);
  const Bytes clean = fake::AnonymizedBytes(in);
  MemorySource source(clean);
  const auto places = (*perfdata::Reader::Open(source))->places();
  const uint64_t config = places->attrs_offset + 8;
  std::vector<size_t> spots = {config, config + 48};  // config1
  const size_t features = places->data_offset + places->data_size;
  const std::string_view text = AsText(clean).substr(features);
  for (const std::string_view word : {"x86_64", "a word", "/bin/prog"}) {
    spots.push_back(features + text.find(word) + 1);
  }
  for (const size_t at : spots) {
    for (const Endian order : {Endian::kLittle, Endian::kBig}) {
      Bytes out = clean;
      StoreUnaligned(out.data() + at, Places().text + 0x10, order);
      const auto verdict = VerifyBytes(in, out);
      ASSERT_TRUE(verdict);
      EXPECT_TRUE(std::ranges::any_of(verdict->findings,
                                      [&](const Finding& f) {
                                        return f.kind == FindingKind::kOriginalValue &&
                                               f.file_offset + f.offset == at;
                                      }))
          << at << "\n"
          << TextOf(*verdict);
    }
  }
}

// ---- what looks like a leak and is none ----

TEST(VerifyBytes, TimesAndThreadNumbersAreNoAddresses) {
  const auto make = [](const Places& at) {
    Recording out({SomeEvent(0)});
    out.Map(kPid, at.libc, 0x40000000, 0, "/lib/libc.so.6");
    perfdata::Sample sample;
    sample.ip = at.libc;
    sample.pid = 0xa00000;
    sample.tid = 0x7f00;  // side by side they are 0x7f00'00a00000
    for (int i = 0; i < 100; ++i) out.AddSample(sample);
    out.Add(RecordType::kFork, perfdata::Task{1, 2, 1, 2, Places().libc + 5});  // after 38 hours
    out.Add(RecordType::kFork, perfdata::Task{1, 2, 1, 2, (Places().libc + 5) << 8});
    return out.Finish();
  };
  const auto verdict = VerifyBytes(make({}), make(kMoved));
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->clean()) << TextOf(*verdict);
}

// Of programs at fixed low addresses: a count may be one of them, an address or hex may not.
TEST(VerifyBytes, SmallNumbersAreCounts) {
  const auto make = [](uint64_t text, uint64_t ip, const std::string& word) {
    Recording out({SomeEvent(perfdata::kSamplePeriod)});
    out.Map(kPid, text, 0x100000, 0, "/bin/prog");
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.ip = ip;
    sample.period = 0x401000;
    out.AddSample(sample);
    return out.Finish({{static_cast<uint32_t>(Feature::kCmdline),
                        perfdata::EncodeStringList({word}, Endian::kLittle)}});
  };
  const Bytes in = make(0x400000, 0x401234, "");
  const auto found = [&](uint64_t ip, const std::string& word) {
    return VerifyBytes(in, make(0x123456700000, ip, word))->found;
  };
  EXPECT_EQ(found(0x123456701234, "20230415"), 0);
  EXPECT_EQ(found(0x401234, ""), 3);  // outside, an original, and no frame of IN's
  EXPECT_EQ(found(0x123456701234, "bp:0x401234"), 1);
  EXPECT_EQ(found(0x123456701234, "0000000000401234"), 1);
}

// Half of all numbers are addresses there: in bytes and texts only where a mapping began is one.
TEST(VerifyBytes, In32BitsTheStartOfAMappingIsFoundInTextsAndBytes) {
  constexpr uint32_t kStart = 0x40001000;
  const auto make = [](uint64_t addr, const std::string& word, uint32_t in_id) {
    Recording out({SomeEvent(0)});
    out.Map(kPid, addr, 0x4000, 0, "/bin/prog");
    Bytes id(20, 0x77);
    StoreUnaligned(id.data() + 5, in_id, Endian::kLittle);
    const std::vector<perfdata::HeaderBuildId> ids = {{-1, BuildId(id), "/bin/prog"}};
    return out.Finish(
        {{static_cast<uint32_t>(Feature::kArch), perfdata::EncodeString("armv7l", Endian::kLittle)},
         {static_cast<uint32_t>(Feature::kCmdline),
          perfdata::EncodeStringList({word}, Endian::kLittle)},
         {static_cast<uint32_t>(Feature::kBuildId),
          *perfdata::EncodeBuildIds(ids, {0}, Endian::kLittle)}});
  };
  const auto found = [&](const std::string& word, uint32_t in_id) {
    return VerifyBytes(make(kStart, "", 0x77), make(0x60001000, word, in_id))->found;
  };
  EXPECT_EQ(found("bp:40001000", 0x77), 1);
  EXPECT_EQ(found("bp:40001010", 0x77), 0);
  EXPECT_EQ(found("", kStart), 1);
  EXPECT_EQ(found("", kStart + 0x10), 0);
}

// Of machines of 32 bits: of many mappings some stay by chance, and all do if nothing moves them.
TEST(VerifyBytes, In32BitsSomeMappingsStayByChance) {
  const auto make = [](uint64_t moved, uint64_t stays, uint64_t pgoff) {
    Recording out({SomeEvent(0)});
    for (uint64_t i = 0; i < 20; ++i) {
      const uint64_t addr = 0x40001000 + (i * 0x101000);
      out.Map(kPid, i < stays ? addr : addr + moved, 0x1000, 0, "/lib/" + std::to_string(i));
    }
    out.Add(RecordType::kAux, perfdata::Aux{pgoff, 0, 0});
    return out.Finish({{static_cast<uint32_t>(Feature::kArch),
                        perfdata::EncodeString("armv7l", Endian::kLittle)}});
  };
  const auto found = [&](uint64_t stays, uint64_t pgoff) {
    return VerifyBytes(make(0, 0, 0), make(0x20000000, stays, pgoff))->found;
  };
  EXPECT_EQ(found(0, 0), 0);
  EXPECT_EQ(found(2, 0), 0);
  EXPECT_EQ(found(3, 0), 3);
  EXPECT_EQ(found(20, 0), 20);
  EXPECT_EQ(found(0, 0x40001000), 1);  // where one was, in a number that is no address
}

}  // namespace
}  // namespace stackreel::anonymize
