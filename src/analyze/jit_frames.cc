#include "analyze/jit_frames.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "dwarf/cfi.h"

namespace stackreel::analyze {
namespace {

using session::JitCode;
using session::JitDump;

// Writes a .debug_frame of FDEs that come from many places. There addresses are absolute, so that
// entries need not stay where they were.
class FrameWriter {
 public:
  explicit FrameWriter(Endian endian) : out_(endian) {}

  // CIE  length 4 · -1 4 · version 1 · "" · code align · data align · return address · instructions
  // FDE  length 4 · CIE 4 · start 8 · size 8 · instructions
  void Add(const dwarf::Fde& fde) {
    const size_t cie = out_.size();
    const size_t cie_end = Begin(UINT32_MAX);
    out_.U8(3);
    out_.U8(0);
    Uleb(fde.cie.code_align);
    Sleb(fde.cie.data_align);
    Uleb(fde.cie.return_address_register);
    out_.Bytes(fde.cie.instructions);
    End(cie_end);
    const size_t fde_end = Begin(static_cast<uint32_t>(cie));
    out_.U64(fde.start.value);
    out_.U64(fde.end - fde.start);
    out_.Bytes(fde.instructions);
    End(fde_end);
  }
  [[nodiscard]] size_t size() const { return out_.size(); }
  std::vector<uint8_t> Take() { return out_.Take(); }

 private:
  size_t Begin(uint32_t id) {
    const size_t at = out_.size();
    out_.U32(0);
    out_.U32(id);
    return at;
  }
  void End(size_t at) {
    out_.AlignTo(8);  // DW_CFA_nop is 0
    out_.PutAt(at, static_cast<uint32_t>(out_.size() - at - 4));
  }
  void Uleb(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.U8(static_cast<uint8_t>(value | 0x80));
    out_.U8(static_cast<uint8_t>(value));
  }
  void Sleb(int64_t value) {
    for (; value < -64 || value > 63; value >>= 7) out_.U8(static_cast<uint8_t>(value | 0x80));
    out_.U8(static_cast<uint8_t>(value & 0x7f));
  }

  ByteWriter out_;
};

// Nothing was put over it since, as far as both of its ends show.
bool IsStillThere(const JitDump& dump, const JitCode& code) {
  return dump.Find(Avma(code.start), UINT64_MAX) == &code &&
         dump.Find(Avma(code.start + code.size - 1), UINT64_MAX) == &code;
}

// .eh_frame lies behind the code, from the next multiple of 8 on.
dwarf::FrameSections SectionsOf(const JitDump& dump, const JitCode& code) {
  dwarf::FrameSections sections;
  sections.endian = dump.endian();
  sections.machine = dump.machine();
  sections.eh_frame = code.eh_frame;
  sections.eh_frame_svma = Svma(code.start + ((code.size + 7) & ~uint64_t{7}));
  return sections;
}

}  // namespace

std::shared_ptr<const unwind::UnwindModule> MakeJitFrames(const JitDump& dump, size_t dump_size,
                                                          Counters& counters) {
  constexpr size_t kMaxOffset = size_t{1} << 31;  // offsets of CIEs have 32 bits
  constexpr size_t kTimes = 8;  // an FDE gets a CIE of its own, which is several times its size
  const size_t limit = std::min(kMaxOffset, dump_size * kTimes);
  size_t read = 0;
  FrameWriter writer(dump.endian());
  for (const JitCode& code : dump.codes()) {
    if (code.eh_frame.empty() || !IsStillThere(dump, code)) continue;
    read += code.eh_frame.size();
    if (read > limit || writer.size() > limit) {
      counters.Add("analyze.jit_frames_left_out");
      continue;
    }
    const dwarf::FrameTable frames(SectionsOf(dump, code));
    for (const dwarf::Fde& fde : frames.AllFdes()) {
      if (writer.size() > limit) break;
      if (fde.start.value >= code.start && fde.end.value <= code.start + code.size) writer.Add(fde);
    }
  }
  if (writer.size() == 0) return nullptr;
  std::vector<elf::SectionBytes> owned;
  owned.emplace_back(writer.Take());
  dwarf::FrameSections sections;
  sections.endian = dump.endian();
  sections.machine = dump.machine();
  sections.debug_frame = owned.front().view();
  return unwind::UnwindModule::OfSections(sections, std::move(owned));
}

}  // namespace stackreel::analyze
