#include "signed_recording.h"

#include <map>
#include <memory>
#include <utility>

#include "base/byte_writer.h"
#include "base/memory_io.h"
#include "perfdata/context_marker.h"
#include "perfdata/features.h"
#include "perfdata/pac_mask.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"
#include "perfdata/writer.h"

namespace stackreel {
namespace {

using perfdata::RecordType;

// Signatures of 48-bit and of 39-bit addresses: all from there up to bit 54.
constexpr uint64_t kMask48 = 0x007f000000000000;
constexpr uint64_t kMask39 = 0x007fff8000000000;
constexpr uint64_t kAllKeys = 0x1f;

class Writing {
 public:
  Writing(const char* binary, uint64_t base, MasksOf masks)
      : binary_(binary), base_(base), masks_(masks) {}

  Result<std::vector<uint8_t>> Write() {
    perfdata::Event event;
    event.attr.type = perfdata::kTypeHardware;
    event.attr.sample_period_or_freq = 1000;
    event.attr.sample_type = kSampleType;
    event.attr.flags = perfdata::kAttrSampleIdAll | perfdata::kAttrMmap | perfdata::kAttrMmap2 |
                       perfdata::kAttrComm | perfdata::kAttrTask;
    if (masks_ == MasksOf::kKernel) event.attr.flags |= perfdata::kAttrPtrAuth;
    event.ids = {10};
    event.name = "cycles";
    perfdata::WriterOptions options;
    options.endian = kEndian;
    TRY_ASSIGN(writer_, perfdata::Writer::Create(sink_, options, {event}));
    TRY(masks_ == MasksOf::kKernel ? ProcessesOfTheKernel() : Processes());
    TRY(Add(RecordType::kFinishedRound, 0, perfdata::FinishedRound{}));
    TRY(writer_->Finish({
        {static_cast<uint32_t>(perfdata::Feature::kArch),
         perfdata::EncodeString("aarch64", kEndian)},
        {static_cast<uint32_t>(perfdata::Feature::kStackreelPacMask),
         perfdata::EncodePacMask(0xf, kMask48, kMask48, kEndian)},
    }));
    return sink_.bytes();
  }

 private:
  static constexpr Endian kEndian = Endian::kLittle;
  static constexpr uint64_t kSampleType = perfdata::kSampleIdentifier | perfdata::kSampleIp |
                                          perfdata::kSampleTid | perfdata::kSampleTime |
                                          perfdata::kSamplePeriod | perfdata::kSampleCallchain;

  Status Processes() {
    // 100: a mask of its own, that becomes another; 101 is forked from it, and execs.
    TRY(Program(100, "own"));
    TRY(Mask(100, kMask48, perfdata::PacMask::kAskedOfCpu));
    TRY(Sample(100, kMask48));
    TRY(Add(RecordType::kFork, 0, perfdata::Task{101, 100, 101, 100, time_}));
    TRY(Sample(101, kMask48));
    TRY(Mask(100, kMask39, perfdata::PacMask::kAskedOfCpu));
    TRY(Sample(100, kMask39));
    TRY(Sample(101, kMask48));
    TRY(Program(101, "after-exec"));
    TRY(Sample(101, kMask48));
    // 200: none of its own, so that of the CPU.
    TRY(Program(200, "header"));
    TRY(Sample(200, kMask48));
    // 300: a program of 32 bits has no signatures.
    TRY(Program(300, "bits32"));
    TRY(Mask(300, 0, perfdata::PacMask::kProgramOf32Bits));
    TRY(Sample(300, 0));
    // 400: a mask that takes bits from the addresses of its own program is not used.
    TRY(Program(400, "bad-mask"));
    TRY(Mask(400, 0x007ffffffffff000, perfdata::PacMask::kAskedOfCpu));
    TRY(Sample(400, kMask48));
    // 500: a mask for a process that nothing else tells of.
    return Mask(500, kMask48, perfdata::PacMask::kAskedOfCpu);
  }

  // The kernel says the masks of 600, of which a thread disables its keys. 601 is forked from it,
  // and execs a program of 39-bit addresses.
  Status ProcessesOfTheKernel() {
    TRY(Program(600, "kernel"));
    TRY(KernelMask(600, 600, kAllKeys, kMask48));
    TRY(Sample(600, kMask48));
    TRY(KernelMask(600, 602, 0, kMask48));
    TRY(Sample(600, kMask48));
    TRY(Add(RecordType::kFork, 0, perfdata::Task{601, 600, 601, 600, time_}));
    TRY(KernelMask(601, 601, kAllKeys, kMask48));
    TRY(Sample(601, kMask48));
    TRY(Program(601, "kernel-exec"));
    TRY(KernelMask(601, 601, kAllKeys, kMask39));
    return Sample(601, kMask39);
  }

  Status Program(uint32_t pid, const char* name) {
    TRY(Add(RecordType::kComm, perfdata::kMiscCommExec, perfdata::Comm{pid, pid, name}));
    perfdata::Mmap2 map;
    map.pid = map.tid = pid;
    map.addr = base_ + 0x1000;
    map.len = map.pgoff = 0x1000;
    map.prot = 5;
    map.flags = 2;
    map.filename = binary_;
    return Add(RecordType::kMmap2, 2, map);
  }

  // As a kernel that has it writes it.
  Status KernelMask(uint32_t pid, uint32_t tid, uint64_t keys, uint64_t mask) {
    return Add(RecordType::kPtrAuth, 0, perfdata::PtrAuth{pid, tid, keys, mask, mask});
  }

  // As `record` writes it.
  Status Mask(uint32_t pid, uint64_t mask, uint32_t source) {
    perfdata::PacMask record;
    record.pid = record.tid = pid;
    record.time = time_ += 1000;
    record.enabled_keys = mask == 0 ? 0 : 0xf;
    record.insn_mask = record.data_mask = mask;
    record.source = source;
    return Add(RecordType::kEventUpdate, 0, perfdata::MakePacMaskUpdate(record, kEndian));
  }

  // main > serve > price, the return addresses signed.
  Status Sample(uint32_t pid, uint64_t signature) {
    ByteWriter chain(kEndian);
    const uint64_t text = base_ + 0x1000;
    chain.U64(perfdata::kContextUser);
    chain.U64(text + 0x420);
    chain.U64((text + 0x140) | (signature & 0x0055555555555555));
    chain.U64((text + 0x040) | (signature & 0x002aaaaaaaaaaaaa));
    perfdata::Sample sample;
    sample.present = kSampleType;
    sample.id = 10;
    sample.ip = text + 0x420;
    sample.pid = sample.tid = pid;
    sample.time = time_ += 1'000'000;
    sample.period = 1000;
    sample.callchain = perfdata::U64Array(chain.view(), kEndian);
    return writer_->WriteSample(sample, 2, 0);
  }

  Status Add(RecordType type, uint16_t misc, perfdata::RecordBody body) {
    perfdata::Record record;
    record.type = static_cast<uint32_t>(type);
    record.misc = misc;
    record.body = std::move(body);
    if (record.type < 64) {
      perfdata::SampleId id;
      id.present = perfdata::kSampleIdentifier | perfdata::kSampleTid | perfdata::kSampleTime;
      id.time = time_ += 1000;
      id.id = 10;
      record.sample_id = id;
    }
    return writer_->WriteRecord(record);
  }

  const char* binary_;
  uint64_t base_;
  MasksOf masks_;
  MemorySink sink_;
  std::unique_ptr<perfdata::Writer> writer_;
  uint64_t time_ = 5'000'000'000;
};

}  // namespace

Result<std::vector<uint8_t>> SignedRecording(const char* binary, uint64_t base, MasksOf masks) {
  return Writing(binary, base, masks).Write();
}

}  // namespace stackreel
