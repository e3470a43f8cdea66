// For tests of verification: recordings in memory, what a transform should make of them, and leaks
// on purpose.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "anonymize/fake_recording.h"
#include "anonymize/verify.h"
#include "anonymize/verify_record.h"
#include "base/byte_writer.h"
#include "perfdata/feature_layout.h"
#include "perfdata/one_of_each.h"
#include "perfdata/pac_mask.h"

namespace stackreel::anonymize::fake {

using perfdata::Container;
using perfdata::Feature;
using perfdata::RecordType;

inline constexpr uint32_t kPid = 10;

inline Result<Verdict> VerifyBytes(const Bytes& in, const Bytes& out,
                                   const VerifyOptions& options = {}) {
  MemorySource in_source(in), out_source(out);
  return Verify(RereadableRecording(in_source), RereadableRecording(out_source), options);
}

inline std::string TextOf(const Verdict& verdict) {
  std::string text;
  for (const Finding& f : verdict.findings) {
    text += fmt::format("({}) {} {} {:#x}+{:#x} {}\n", static_cast<char>(f.kind), f.record, f.field,
                        f.file_offset, f.offset, f.value);
  }
  return text;
}

// Where things lie in a made-up recording: another one of the same with other places is what a
// transform should make of it.
struct Places {
  uint64_t text = 0x555500000000, libc = 0x7f0000a00000, heap = 0x555500800000;
  uint64_t kernel = 0xffffffff9a000000, module = 0xffffffffc0100000, outside = 0x7ffd00001000;
};
inline constexpr Places kMoved = {0x123456789000,     0x234567890000,     0x1abcdef00000,
                                  0xffff900012300000, 0xffffb00012300000, 0x200000001000};

// What is to be wrong.
struct Leak {
  std::function<void(perfdata::Event&)> event = [](perfdata::Event&) {};
  std::function<void(perfdata::Sample&)> sample = [](perfdata::Sample&) {};
  std::function<void(Recording&)> more = [](Recording&) {};
  std::map<uint32_t, Bytes> features = {};
};

inline Bytes Words(std::initializer_list<uint64_t> words, Endian endian) {
  ByteWriter out(endian);
  for (const uint64_t word : words) out.U64(word);
  return out.Take();
}

// Three samples of a program, a library and a kernel.
inline Bytes Make(const Places& at, const perfdata::WriterOptions& options, const Leak& leak = {}) {
  perfdata::Event event = SomeEvent(perfdata::kSampleAddr | perfdata::kSamplePeriod |
                                    perfdata::kSampleCallchain | perfdata::kSampleBranchStack);
  leak.event(event);
  Recording out({event, SomeEvent(perfdata::kSamplePeriod, 101)}, options);
  out.MapKernel(at.kernel, 0x1000000, at.kernel, "[kernel.kallsyms]_text");
  out.MapKernel(at.module, 0x5000, 0, "[some_module]");
  out.Map(kPid, at.text, 0x4000, 0, "/bin/prog");
  out.Map(kPid, at.libc, 0x200000, 0x28000, "/lib/libc.so.6");
  out.Map(kPid, at.heap, 0x21000, at.heap, "[heap]");
  out.Add(RecordType::kKsymbol, perfdata::Ksymbol{at.module + 0x8000, 0x100, 1, 0, "bpf_prog"}, 1);
  for (uint64_t i = 1; i <= 3; ++i) {
    const Endian endian = options.endian;
    const Bytes chain = Words({perfdata::kContextKernel, at.kernel + i, perfdata::kContextUser,
                               at.text + i, at.libc + 0x200000, at.outside + i},
                              endian);
    const Bytes branches = Words({at.text + i, at.libc + i, 0}, endian);
    perfdata::Sample sample;
    sample.pid = sample.tid = kPid;
    sample.ip = at.text + i;
    sample.addr = at.heap + 0x800 + i;
    sample.period = 1000 + i;
    sample.callchain = perfdata::U64Array(chain, endian);
    sample.branches = perfdata::BranchArray(branches, endian);
    leak.sample(sample);
    out.AddSample(sample, 2);
  }
  leak.more(out);
  std::map<uint32_t, Bytes> features = leak.features;
  features.try_emplace(static_cast<uint32_t>(Feature::kHostname),
                       perfdata::EncodeString("sekrithost", options.endian));
  return out.Finish(features);
}

// Of pointer authentication.
inline perfdata::PacMask SomeMask() {
  perfdata::PacMask mask;
  mask.pid = kPid;
  mask.tid = kPid + 1;
  mask.time = 20;
  mask.enabled_keys = 0xf;
  mask.insn_mask = mask.data_mask = 0x7f000000000000;
  return mask;
}

// A recording of everything there is, as `one_of_each` has it.
inline Bytes Everything(const perfdata::WriterOptions& options) {
  Recording in({SomeEvent(perfdata::kSampleAddr | perfdata::kSamplePeriod | perfdata::kSampleCpu |
                          perfdata::kSampleCallchain | perfdata::kSampleWeight)},
               options);
  in.Map(kPid, Places().text, 0x4000, 0, "/bin/prog");
  in.MapKernel(Places().kernel, 0x1000000, Places().kernel, "[kernel.kallsyms]_text");
  for (const auto& records :
       {perfdata::one_of_each::KernelRecords(), perfdata::one_of_each::UserRecords()}) {
    for (const perfdata::Record& record : records) {
      const auto type = static_cast<RecordType>(record.type);
      if (type == RecordType::kAuxtrace || type == RecordType::kHeaderAttr) continue;
      std::visit([&](const auto& body) { in.Add(type, body, record.misc, kPid); }, record.body);
    }
  }
  in.Add(RecordType::kEventUpdate, perfdata::MakePacMaskUpdate(SomeMask(), options.endian));
  const Bytes chain = Words({Places().text + 1, Places().text + 2}, options.endian);
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.ip = Places().text + 1;
  sample.callchain = perfdata::U64Array(chain, options.endian);
  in.AddSample(sample);
  const std::vector<perfdata::HeaderBuildId> ids = {
      {-1, perfdata::one_of_each::SomeBuildId(), "/bin/prog"}};
  return in.Finish(
      {{static_cast<uint32_t>(Feature::kCmdline),
        perfdata::EncodeStringList({"perf", "record", "a word of some length"}, options.endian)},
       {static_cast<uint32_t>(Feature::kBuildId),
        *perfdata::EncodeBuildIds(ids, {0}, options.endian)}});
}

inline bool Has(const Verdict& verdict, FindingKind kind, std::string_view record,
                std::string_view field) {
  return std::ranges::any_of(verdict.findings, [&](const Finding& f) {
    return f.kind == kind && f.record == record && f.field == field;
  });
}

// For recordings of each byte order and container.
class VerifyEach : public testing::TestWithParam<std::tuple<Endian, Container>> {
 protected:
  [[nodiscard]] perfdata::WriterOptions options() const {
    return {std::get<1>(GetParam()), std::get<0>(GetParam()), 0};
  }
  [[nodiscard]] Endian endian() const { return std::get<0>(GetParam()); }
  // What is found where OUT leaks so; IN has `also` besides.
  [[nodiscard]] Verdict Of(const Leak& leak, const Leak& also = {},
                           const VerifyOptions& verify = {}) const {
    const auto verdict =
        VerifyBytes(Make({}, options(), also), Make(kMoved, options(), leak), verify);
    EXPECT_TRUE(verdict) << (verdict ? "" : verdict.error().ToString());
    return verdict.value_or(Verdict());
  }
};

// Where something may be planted: all of `record`.`field` that is not looked over on purpose.
struct Spot {
  std::string record;
  FieldSpan span;
  uint64_t file_offset = 0;
};

class Spots : public perfdata::RecordSink {
 public:
  explicit Spots(const Bytes& bytes) : source_(bytes), reader_(*perfdata::Reader::Open(source_)) {
    EXPECT_TRUE(reader_->ReadAll(*this));
  }
  Status OnRecord(const perfdata::RawRecord& raw) override {
    const Endian endian = reader_->endian();
    const auto event = reader_->events().IndexOf(raw, endian);
    const perfdata::Attr* attr = event ? &reader_->events().events()[*event].attr : nullptr;
    FieldSpans fields;
    perfdata::Sample sample;
    const bool decodes = raw.record_type() == RecordType::kSample
                             ? FindFieldsOfSample(raw, *attr, endian, sample, fields)
                             : FindFields(raw, attr, endian, 0, fields).has_value();
    if (!decodes) return {};
    for (const FieldSpan& span : fields.spans()) {
      if (span.info == nullptr) continue;
      all.push_back({perfdata::RecordTypeName(raw.type), span, raw.file_offset});
    }
    return {};
  }
  std::vector<Spot> all;

 private:
  MemorySource source_;
  std::unique_ptr<perfdata::Reader> reader_;
};

// Every case of VerifyEach.
inline const auto kEach = testing::Combine(testing::Values(Endian::kLittle, Endian::kBig),
                                           testing::Values(Container::kFile, Container::kPipe));

}  // namespace stackreel::anonymize::fake
