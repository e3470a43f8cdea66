#include "tracer/target_process.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <set>
#include <utility>

#include "patch/journal.h"

namespace stackreel::tracer {

Status TargetCode::Read(Avma at, std::span<uint8_t> out) {
  if (!target_.held()) return target_.Read(at, out);
  if (hold_ != target_.holds()) pages_.clear();
  hold_ = target_.holds();
  for (size_t done = 0; done < out.size();) {
    const uint64_t from = at.value + done;
    const uint64_t number = from / kPage;
    const auto [page, is_new] = pages_.try_emplace(number);
    if (is_new) {
      if (Status read = target_.Read(Avma(number * kPage), page->second); !read) {
        pages_.erase(page);
        return read;
      }
    }
    const size_t size = std::min<size_t>(out.size() - done, kPage - from % kPage);
    std::copy_n(page->second.begin() + static_cast<std::ptrdiff_t>(from % kPage), size,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += size;
  }
  return {};
}

Status TargetCode::Write(Avma at, ByteView bytes) {
  Forget(at, bytes.size());
  return target_.Write(at, bytes);
}

void TargetCode::Forget(Avma at, size_t size) {
  for (uint64_t page = at.value / kPage; page <= (at.value + size - 1) / kPage; ++page) {
    pages_.erase(page);
  }
}

Status TargetCores::Sync() {
  if (target_.held()) return {};  // they will have been stopped
  TRY(target_.Hold());
  return target_.LetGo();
}

Result<std::vector<ThreadPosition>> FindPositions(Target& target) {
  TRY_ASSIGN(const std::vector<os::ProcMapping> maps, os::ReadProcMaps(target.pid()));
  SignalFrameFinder finder(
      maps, [&target](Avma at, std::span<uint8_t> out) { return target.Read(at, out); });
  std::vector<ThreadPosition> positions;
  const auto threads = target.threads().threads();
  for (size_t i = 0; i < threads.size(); ++i) {
    const os::StoppedProcess::Thread& thread = threads[i];
    positions.push_back({.thread = i,
                         .position = {.ip = thread.instruction_pointer,
                                      .trap_pending = thread.at_breakpoint,
                                      .may_restart = thread.may_restart},
                         .place = Avma(0)});
    for (const SignalFrame& frame : finder.Find(thread.instruction_pointer, thread.stack_pointer)) {
      positions.push_back(
          {.thread = i,
           .position = {.ip = frame.ip, .trap_pending = frame.of_breakpoint, .may_restart = false},
           .place = frame.ip_place});
    }
  }
  return positions;
}

Status TargetThreads::Move(const ThreadPosition& from, Avma to) {
  if (from.place.value != 0) return target_.WriteObject(from.place, to.value);
  return target_.threads().SetInstructionPointer(from.thread, to);
}

Result<std::vector<size_t>> TargetThreads::ClearOut(std::span<const patch::Site* const> sites,
                                                    patch::Form inside) {
  TRY_ASSIGN(const Holding held, Holding::Of(target_));
  TRY_ASSIGN(const std::vector<ThreadPosition> positions, FindPositions(target_));
  std::set<size_t> left;
  for (const ThreadPosition& position : positions) {
    const patch::ClearDecision decision = patch::DecideClearing(position.position, sites, inside);
    switch (decision.action) {
      case patch::ClearAction::kLeave:
        break;
      case patch::ClearAction::kMove:
        // A thread that cannot be moved keeps its site as it is; one that was killed meanwhile is
        // in nobody's way.
        if (const Status moved = Move(position, decision.to);
            !moved && moved.error().kind != ErrorKind::kNotFound) {
          left.insert(decision.site);
        }
        break;
      case patch::ClearAction::kDefer:
        left.insert(decision.site);
        break;
    }
  }
  return std::vector<size_t>(left.begin(), left.end());
}

Status TargetJournal::Grow(Buffer& buffer, uint64_t size) {
  if (size <= buffer.size) return {};
  constexpr uint64_t kPage = 4096;
  const uint64_t wanted = (size + size / 2 + kPage - 1) / kPage * kPage;
  TRY_ASSIGN(const Holding held, Holding::Of(target_));
  TRY_ASSIGN(const uint64_t at, target_.SystemCall("mmap", SYS_mmap,
                                                   {0, wanted, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0}));
  // The one that it replaces is spoken of by nobody: the control block names the other buffer.
  if (buffer.size != 0) {
    (void)target_.SystemCall("munmap", SYS_munmap, {buffer.at.value, buffer.size});
  }
  buffer = {Avma(at), wanted};
  return {};
}

Status TargetJournal::Reserve(size_t sites) {
  const uint64_t size = patch::EncodedSize(sites_.size() + sites);
  // The one that the target's control block names stays.
  TRY(Grow(buffers_[next_], size));
  return buffers_[1 - next_].size == 0 ? Grow(buffers_[1 - next_], size) : Status();
}

void TargetJournal::Adopt(std::span<const patch::Site* const> sites) {
  for (const patch::Site* site : sites) sites_.emplace(site->begin(), *site);
  kept_ = true;
}

Status TargetJournal::Keep(std::span<const patch::Site* const> sites) {
  bool any_new = !kept_;
  kept_ = false;
  for (const patch::Site* site : sites) {
    if (const auto known = sites_.find(site->begin());
        known != sites_.end() && known->second == *site) {
      continue;
    }
    any_new = true;
    // What was planned anew takes the place of what stood there.
    auto at = sites_.lower_bound(site->begin());
    if (at != sites_.begin() && std::prev(at)->second.end() > site->begin()) --at;
    while (at != sites_.end() && at->first < site->end()) at = sites_.erase(at);
    sites_.emplace(site->begin(), *site);
  }
  // What is there says it all: the journal does not tell how far a batch has come.
  kept_ = !any_new;
  if (kept_) return {};
  std::vector<const patch::Site*> all;
  all.reserve(sites_.size());
  for (const auto& [begin, site] : sites_) all.push_back(&site);
  const std::vector<uint8_t> bytes = patch::EncodeSites(all);
  Buffer& buffer = buffers_[next_];
  TRY(Grow(buffer, bytes.size()));
  TRY(target_.Write(buffer.at, bytes));
  struct {
    uint64_t at, size;
  } const where = {buffer.at.value, bytes.size()};
  static_assert(offsetof(tracedata::AgentControl, journal_size) ==
                offsetof(tracedata::AgentControl, journal) + sizeof(uint64_t));
  TRY(target_.WriteObject(agent_.control() + offsetof(tracedata::AgentControl, journal), where));
  next_ = 1 - next_;
  kept_ = true;
  return {};
}

Result<std::vector<patch::Site>> ReadJournal(const Target& target, const AgentPlace& agent) {
  return agent::ReadJournal(agent, ReaderOf(target));
}

}  // namespace stackreel::tracer
