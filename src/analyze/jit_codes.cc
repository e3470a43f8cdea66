#include "analyze/jit_codes.h"

#include "analyze/jit_frames.h"

namespace stackreel::analyze {

std::shared_ptr<const JitCodes> JitCodesCache::Get(const session::Session& session,
                                                   session::ModuleId id) {
  if (id == session::kNoModule) return nullptr;
  const auto [it, made] = by_module_.try_emplace(id);
  if (!made) return it->second;
  const FileImagePtr file = symbolizer_.FilesOf(id, session.modules()[id]).main;
  if (file == nullptr) return nullptr;
  Result<session::JitDump> dump = session::JitDump::Parse(file->bytes());
  if (!dump) return nullptr;
  counters_.Add("analyze.bad_jitdump_record", dump->bad_records());
  auto frames = MakeJitFrames(*dump, file->bytes().size(), counters_);
  it->second =
      std::make_shared<const JitCodes>(JitCodes{file, std::move(*dump), id, std::move(frames)});
  return it->second;
}

// The kernel's formula (perf_event.h, perf_event_mmap_page::time_shift) is
//   time = zero + ((tsc >> shift) * mult) + (((tsc & (2^shift - 1)) * mult) >> shift)
// and the other way
//   tsc = ((t / mult) << shift) + (((t mod mult) << shift) / mult),   t = time - zero
uint64_t JitCodesCache::TimeInDump(const session::JitDump& dump, const perfdata::Attr& attr,
                                   uint64_t time) {
  constexpr int32_t kClockMonotonic = 1;
  const bool own_clock = attr.Has(perfdata::kAttrUseClockid);
  if (dump.has_cpu_clock() && !own_clock && conversion_ && conversion_->mult != 0 &&
      conversion_->shift < 32) {
    const uint64_t since = time - conversion_->zero;
    return ((since / conversion_->mult) << conversion_->shift) +
           ((since % conversion_->mult) << conversion_->shift) / conversion_->mult;
  }
  if (!dump.has_cpu_clock() && own_clock && attr.clockid == kClockMonotonic) return time;
  counters_.Add("analyze.jit_clock_unknown");
  return UINT64_MAX;
}

}  // namespace stackreel::analyze
