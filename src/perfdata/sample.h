// PERF_RECORD_SAMPLE, decoded in place: spans point into the record.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

// An array of 64-bit values in the file's byte order, perhaps not aligned.
class U64Array {
 public:
  U64Array() = default;
  U64Array(ByteView bytes, Endian endian) : bytes_(bytes), endian_(endian) {}
  [[nodiscard]] size_t size() const { return bytes_.size() / 8; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  uint64_t operator[](size_t i) const {
    return LoadUnaligned<uint64_t>(bytes_.data() + 8 * i, endian_);
  }
  [[nodiscard]] ByteView bytes() const { return bytes_; }
  [[nodiscard]] Endian endian() const { return endian_; }

 private:
  ByteView bytes_;
  Endian endian_ = Endian::kLittle;
};

// Bits of branch_sample_type that change a sample's layout.
inline constexpr uint64_t kBranchHwIndex = uint64_t{1} << 17;
inline constexpr uint64_t kBranchCounters = uint64_t{1} << 19;
// Bit of SampledRegs::abi: a block of vector registers follows (proposed, in no released kernel).
inline constexpr uint64_t kRegsAbiSimd = 4;

struct BranchEntry {
  uint64_t from = 0, to = 0;
  uint64_t flags = 0;  // in little-endian bit order: mispred 0, predicted 1, in_tx 2, abort 3, …
};

// perf_branch_entry's flag word as a big-endian file has it, to and from the order above.
uint64_t BranchFlagsFromBigEndian(uint64_t word);
uint64_t BranchFlagsToBigEndian(uint64_t flags);

// A branch stack: three words an entry.
class BranchArray {
 public:
  BranchArray() = default;
  BranchArray(ByteView bytes, Endian endian) : words_(bytes, endian) {}
  [[nodiscard]] size_t size() const { return words_.size() / 3; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  BranchEntry operator[](size_t i) const {
    const uint64_t flags = words_[3 * i + 2];
    return {words_[3 * i], words_[3 * i + 1],
            words_.endian() == Endian::kBig ? BranchFlagsFromBigEndian(flags) : flags};
  }
  [[nodiscard]] ByteView bytes() const { return words_.bytes(); }

 private:
  U64Array words_;
};

// Registers as dumped: `values` holds one for each bit set in `mask`, lowest first.
struct SampledRegs {
  uint64_t abi = 0;  // 0 none, 1 32-bit task, 2 64-bit task; | kRegsAbiSimd
  uint64_t mask = 0;
  U64Array values;
  // With kRegsAbiSimd: `vectors` registers of `vector_words` words, then the predicates, in `simd`.
  uint16_t vectors = 0, vector_words = 0, predicates = 0, predicate_words = 0;
  U64Array simd;
  // The register with perf's number `reg` (asm/perf_regs.h), if it was dumped.
  [[nodiscard]] std::optional<uint64_t> Get(unsigned reg) const;
};

struct Sample {
  uint64_t present = 0;  // SampleBits of the fields that are there
  uint64_t id = 0;       // of IDENTIFIER or ID
  uint64_t ip = 0;
  uint32_t pid = 0, tid = 0;
  uint64_t time = 0;
  uint64_t addr = 0;
  uint64_t stream_id = 0;
  uint32_t cpu = 0, cpu_reserved = 0;
  uint64_t period = 0;
  ReadValues read;
  U64Array callchain;
  ByteView raw;
  uint64_t branch_hw_index = 0;
  bool has_branch_hw_index = false;
  BranchArray branches;
  U64Array branch_counters;
  SampledRegs regs_user;
  ByteView stack_user;           // the valid part: dyn_size bytes
  uint64_t stack_user_size = 0;  // of the whole dump; 0 if none was taken
  uint64_t weight = 0;           // WEIGHT, or WEIGHT_STRUCT in little-endian field order
  uint64_t data_src = 0;
  uint64_t transaction = 0;
  SampledRegs regs_intr;
  uint64_t phys_addr = 0;
  uint64_t cgroup = 0;
  uint64_t data_page_size = 0;
  uint64_t code_page_size = 0;
  ByteView aux;
  uint64_t arch_enabled_keys = 0, arch_insn_mask = 0, arch_data_mask = 0;

  [[nodiscard]] bool Has(SampleBit bit) const { return (present & bit) != 0; }
};

// Fills `out` from a SAMPLE record of an event with `attr`. The spans live as long as raw.block.
// kDamaged if a field runs past the record's end.
Status DecodeSample(const RawRecord& raw, const Attr& attr, Endian endian, Sample& out);
// The inverse, as a whole record; `misc` goes into its header. A raw field's size should be 4 more
// than a multiple of 8, as the kernel's is, or what follows is not aligned. Fails with kUnsupported
// if it does not fit 65,535 bytes.
Result<std::vector<uint8_t>> EncodeSample(const Sample& sample, uint16_t misc, const Attr& attr,
                                          Endian endian);

}  // namespace stackreel::perfdata
