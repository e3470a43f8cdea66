// jit-PID.dump: the code that a JIT compiler made, and when (Linux, tools/perf/Documentation,
// jitdump-specification.txt, version 1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/address.h"
#include "base/byte_reader.h"
#include "base/bytes.h"
#include "base/error.h"

namespace stackreel::session {

// One function, or one version of it, as it lay in memory from some time on.
struct JitCode {
  uint64_t time = 0;  // by the dump's clock
  uint64_t start = 0, size = 0;
  // Where the dump file has its bytes. No two functions have the same, however often an address is
  // used again: it is the code's svma.
  uint64_t offset = 0;
  std::string_view name;
  size_t first_line = 0, line_count = 0;  // in JitDump::lines()
  ByteView eh_frame;                      // in memory it would lie right behind the code
  [[nodiscard]] Svma SvmaOf(Avma avma) const { return Svma(offset + (avma.value - start)); }
};

// From `offset` on (from the start of the code) the code is that of `file` and `line`.
struct JitLine {
  uint64_t offset = 0;
  uint32_t line = 0;
  std::string_view file;
};

class JitDump {
 public:
  // `bytes` must outlive it. kDamaged if this is no jitdump. A file that ends in the middle of a
  // record, as while it is written, or has a bad one, is read up to there; bad_records() counts.
  static Result<JitDump> Parse(ByteView bytes);

  // The code that was put last over `avma` at or before `time`; null if there is none.
  [[nodiscard]] const JitCode* Find(Avma avma, uint64_t time) const;
  // The code whose bytes lie at `svma` in the file; null if there are none.
  [[nodiscard]] const JitCode* FindBySvma(Svma svma) const;
  // By start, and by time where that is the same. A code that was moved stands here once for each
  // place it was at.
  [[nodiscard]] const std::vector<JitCode>& codes() const { return codes_; }
  [[nodiscard]] std::span<const JitLine> LinesOf(const JitCode& code) const {
    return std::span(lines_).subspan(code.first_line, code.line_count);
  }
  // Times are of the CPU's counter (TSC), not of CLOCK_MONOTONIC.
  [[nodiscard]] bool has_cpu_clock() const { return has_cpu_clock_; }
  [[nodiscard]] uint16_t machine() const { return machine_; }  // EM_*
  [[nodiscard]] Endian endian() const { return endian_; }
  // Records that could not be read, one of which ended the reading if it was cut off.
  [[nodiscard]] uint64_t bad_records() const { return bad_records_; }

 private:
  // What comes before the record of the code it belongs to.
  struct Announced {
    uint64_t code_start = 0;
    size_t first_line = 0, line_count = 0;
    ByteView eh_frame;
  };
  bool TakeRecord(uint32_t id, uint64_t time, ByteReader body, uint64_t body_at);
  bool TakeLoad(uint64_t time, ByteReader body, uint64_t body_at);
  bool TakeMove(uint64_t time, ByteReader body);
  bool TakeLines(ByteReader body);
  bool TakeUnwindingInfo(ByteReader body);
  void UndoElfHeaderShift();
  void Index();
  uint64_t IndexRange(size_t first, size_t last);
  void FindIn(size_t first, size_t last, uint64_t avma, uint64_t time, const JitCode*& best) const;

  std::vector<JitCode> codes_;
  std::vector<uint64_t> reach_;  // beside codes_: the highest end in the range it is the middle of
  std::vector<uint32_t> by_svma_;                   // in codes_, sorted by offset
  std::unordered_map<uint64_t, size_t> by_number_;  // the number it gave the code → in codes_
  std::vector<JitLine> lines_;
  Announced announced_;
  bool has_cpu_clock_ = false;
  uint16_t machine_ = 0;
  Endian endian_ = Endian::kLittle;
  uint64_t bad_records_ = 0;
};

}  // namespace stackreel::session
