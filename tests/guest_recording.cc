#include "guest_recording.h"

#include <memory>
#include <utility>

#include "base/memory_io.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"
#include "perfdata/writer.h"

namespace stackreel {
namespace {

using perfdata::RecordType;

constexpr uint32_t kEmulator = 4711;  // by its number perf tells guests apart
constexpr uint16_t kKernel = 1, kUser = 2, kGuestKernel = 4, kGuestUser = 5;
constexpr uint64_t kKernelText = 0xffffffff81000000, kKernelSize = 0x1000000;

class Writing {
 public:
  Result<std::vector<uint8_t>> Write(const char* binary, uint64_t base) {
    perfdata::Event event;
    event.attr.type = perfdata::kTypeHardware;
    event.attr.sample_period_or_freq = 1000;
    event.attr.sample_type = kSampleType;
    event.attr.flags = perfdata::kAttrSampleIdAll | perfdata::kAttrMmap | perfdata::kAttrComm;
    event.ids = {10};
    event.name = "cycles";
    TRY_ASSIGN(writer_, perfdata::Writer::Create(sink_, {.endian = kEndian}, {event}));
    TRY(Map(kKernel, UINT32_MAX, kKernelText, kKernelSize, kKernelText, "[kernel.kallsyms]_text"));
    TRY(Map(kGuestKernel, kEmulator, kKernelText, kKernelSize, kKernelText,
            "[guest.kernel.kallsyms.4711]_text"));
    TRY(Add(RecordType::kComm, perfdata::kMiscCommExec,
            perfdata::Comm{kEmulator, kEmulator, "qemu"}));
    TRY(Map(kUser, kEmulator, base + 0x1000, 0x1000, 0x1000, binary));
    TRY(Map(kGuestUser, kEmulator, base + 0x9000, 0x1000, 0, "/usr/bin/in-guest"));
    for (uint64_t i = 0; i < 10; ++i) {
      TRY(Sample(kKernel, kKernelText + 0x100 * i));
      TRY(Sample(kUser, base + 0x1000 + 0x100 * (i % 6)));
      TRY(Sample(kGuestKernel, kKernelText + 0x2000 + 0x100 * i));
      TRY(Sample(kGuestUser, base + 0x9000 + 0x10 * i));
    }
    TRY(Add(RecordType::kFinishedRound, 0, perfdata::FinishedRound{}));
    TRY(writer_->Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                          perfdata::EncodeString("x86_64", kEndian)}}));
    return sink_.bytes();
  }

 private:
  static constexpr Endian kEndian = Endian::kLittle;
  static constexpr uint64_t kSampleType = perfdata::kSampleIdentifier | perfdata::kSampleIp |
                                          perfdata::kSampleTid | perfdata::kSampleTime |
                                          perfdata::kSamplePeriod;

  Status Map(uint16_t mode, uint32_t pid, uint64_t addr, uint64_t len, uint64_t pgoff,
             const char* name) {
    return Add(RecordType::kMmap, mode, perfdata::Mmap{pid, pid, addr, len, pgoff, name});
  }
  Status Sample(uint16_t mode, uint64_t ip) {
    perfdata::Sample sample;
    sample.present = kSampleType;
    sample.id = 10;
    sample.ip = ip;
    sample.pid = sample.tid = kEmulator;
    sample.time = time_ += 1'000'000;
    sample.period = 1000;
    return writer_->WriteSample(sample, mode, 0);
  }
  Status Add(RecordType type, uint16_t misc, perfdata::RecordBody body) {
    perfdata::Record record;
    record.type = static_cast<uint32_t>(type);
    record.misc = misc;
    record.body = std::move(body);
    if (record.type < static_cast<uint32_t>(RecordType::kHeaderAttr)) {
      perfdata::SampleId id;
      id.present = perfdata::kSampleIdentifier | perfdata::kSampleTid | perfdata::kSampleTime;
      id.time = time_ += 1000;
      id.id = 10;
      record.sample_id = id;
    }
    return writer_->WriteRecord(record);
  }

  MemorySink sink_;
  std::unique_ptr<perfdata::Writer> writer_;
  uint64_t time_ = 5'000'000'000;
};

}  // namespace

Result<std::vector<uint8_t>> GuestRecording(const char* binary, uint64_t base) {
  return Writing().Write(binary, base);
}

}  // namespace stackreel
