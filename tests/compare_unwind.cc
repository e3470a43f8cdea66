// Unwinds each user stack of a recording with our unwinder, with libdw and with libunwind, and says
// where they differ and why.
//
//   compare_unwind RECORDING [EXAMPLES]
//
// Chains are compared after what is no code was taken off their ends: perf's chains end so after a
// cut stack. A stack is "same" if ours has all frames that the two others agree on, and no other
// than one of them has.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "support/other_unwinders.h"
#include "support/parting_cause.h"
#include "support/recorded_stacks.h"
#include "unwind/unwind.h"

namespace stackreel {
namespace {

using Chain = std::vector<uint64_t>;

bool IsCode(const RecordedStack& stack, uint64_t pc) {
  const RecordedMapping* mapping = pc == 0 ? nullptr : FindRecordedMapping(*stack.maps, pc - 1);
  return mapping != nullptr && mapping->executable;
}

// Without what is no code at its end, nor what lies behind the first such.
void Trim(const RecordedStack& stack, Chain& chain) {
  for (size_t i = 1; i < chain.size(); ++i) {
    if (!IsCode(stack, chain[i])) {
      chain.resize(i);
      return;
    }
  }
}

size_t CommonPrefix(const Chain& a, const Chain& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

std::string Place(const RecordedStack& stack, uint64_t pc) {
  const unwind::UnwindMapping* mapping = stack.maps->maps.Find(pc);
  if (mapping == nullptr) return fmt::format("{:#x}", pc);
  const size_t index = static_cast<size_t>(mapping - stack.maps->maps.mappings.data());
  const RecordedFile* file = stack.maps->mappings[index].file;
  if (file == nullptr) return fmt::format("anonymous+{:#x}", pc - mapping->start);
  return fmt::format("{}+{:#x}", file->path.substr(file->path.rfind('/') + 1), pc - mapping->bias);
}

struct Chains {
  Chain ours, libdw, libunwind;
  unwind::StackEnd end = unwind::StackEnd::kRoot;
  std::vector<unwind::Frame> frames;
};

enum class Verdict {
  kAllSame,        // one chain
  kLikeLibdw,      // libunwind has another
  kLikeLibunwind,  // libdw has another
  kHasAgreed,      // the two differ; ours goes on where they agree
  kLonger,         // ours goes on behind a chain that both have
  kMoreFrames,     // ours has frames between those that the two agree on
  kOursDiffers,    // ours lacks a frame that both have
};
const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAllSame:
      return "all three the same";
    case Verdict::kLikeLibdw:
      return "as libdw; libunwind differs";
    case Verdict::kLikeLibunwind:
      return "as libunwind; libdw differs";
    case Verdict::kHasAgreed:
      return "has what the two agree on, they differ";
    case Verdict::kLonger:
      return "longer than the two, which are the same";
    case Verdict::kMoreFrames:
      return "has frames that both of the two skip";
    case Verdict::kOursDiffers:
      return "LACKS what the two agree on";
  }
  return "?";
}

// Whether [begin, end) are in `chain`, in that order.
bool HasAll(const Chain& chain, Chain::const_iterator begin, Chain::const_iterator end) {
  for (const uint64_t pc : chain) {
    if (begin != end && *begin == pc) ++begin;
  }
  return begin == end;
}

Verdict Judge(const Chains& chains) {
  const Chain& ours = chains.ours;
  if (ours == chains.libdw && ours == chains.libunwind) return Verdict::kAllSame;
  const size_t agreed = CommonPrefix(chains.libdw, chains.libunwind);
  const size_t common = std::min(CommonPrefix(ours, chains.libdw), agreed);
  if (common < agreed) {
    const auto end = chains.libdw.begin() + static_cast<std::ptrdiff_t>(agreed);
    return HasAll(ours, chains.libdw.begin(), end) ? Verdict::kMoreFrames : Verdict::kOursDiffers;
  }
  if (ours == chains.libdw) return Verdict::kLikeLibdw;
  if (ours == chains.libunwind) return Verdict::kLikeLibunwind;
  return chains.libdw == chains.libunwind ? Verdict::kLonger : Verdict::kHasAgreed;
}

// How many frames all three begin with.
size_t CommonFrames(const Chains& chains) {
  return std::min(CommonPrefix(chains.ours, chains.libdw),
                  CommonPrefix(chains.ours, chains.libunwind));
}

// What another chain does where ours has frame `at`.
const char* GoesOn(const Chains& chains, const Chain& other, size_t at) {
  if (other == chains.ours) return "as ours";
  if (other.size() <= at) return "ends";
  const auto begin = other.begin() + static_cast<std::ptrdiff_t>(at);
  if (HasAll(chains.ours, begin, other.end())) return "skips frames";
  return CommonPrefix(other, chains.ours) > at ? "parts later" : "goes elsewhere";
}

// Why chains part, to count by.
std::string Cause(const RecordedStack& stack, const Chains& chains) {
  const size_t at = CommonFrames(chains);
  return fmt::format("{}: libdw {}, libunwind {}, ours to {}",
                     PartingCauseName(FindPartingCause(stack, chains.frames, at)),
                     GoesOn(chains, chains.libdw, at), GoesOn(chains, chains.libunwind, at),
                     unwind::StackEndName(chains.end));
}

// The frame behind which chains part, and what follows.
std::string PartingPlace(const RecordedStack& stack, const Chains& chains) {
  const size_t at = CommonFrames(chains);
  const auto next = [&](const Chain& chain) {
    return at < chain.size() ? Place(stack, chain[at]) : std::string("(end)");
  };
  const std::string last = at == 0 ? "(nothing)" : Place(stack, chains.ours[at - 1]);
  const std::string ours =
      at < chains.ours.size()
          ? fmt::format("{} [{}]", next(chains.ours),
                        chains.frames[at].origin == unwind::FrameOrigin::kCfi ? "cfi" : "fp")
          : fmt::format("({})", unwind::StackEndName(chains.end));
  return fmt::format("behind {}: ours {}, libdw {}, libunwind {}", last, ours, next(chains.libdw),
                     next(chains.libunwind));
}

// CPU time of one of the three over all stacks.
struct Timer {
  double seconds = 0;
  size_t frames = 0;
  template <typename Work>
  void Run(Work work) {
    const std::clock_t start = std::clock();
    frames += work();
    seconds += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }
  void Print(const char* name) const {
    fmt::print("  {:<10} {:>9} frames {:>8.0f} ns/frame\n", name, frames,
               frames == 0 ? 0.0 : seconds * 1e9 / static_cast<double>(frames));
  }
};

// The most frequent of some causes.
void PrintMost(const std::map<std::string, size_t>& causes, size_t count) {
  std::vector<std::pair<size_t, std::string>> sorted;
  sorted.reserve(causes.size());
  for (const auto& [cause, n] : causes) sorted.emplace_back(n, cause);
  std::sort(sorted.rbegin(), sorted.rend());
  if (sorted.size() > count) sorted.resize(count);
  for (const auto& [n, cause] : sorted) fmt::print("    {:>6}  {}\n", n, cause);
}

int Run(const char* path, size_t examples) {
  const auto recording = LoadRecording(path);
  if (!recording) {
    fmt::print(stderr, "{}\n", recording.error().ToString());
    return 1;
  }
  unwind::Unwinder unwinder;
  const auto libdw = MakeLibdwUnwinder();
  const auto libunwind = MakeLibunwindUnwinder();
  std::vector<Chains> all((*recording)->stacks.size());
  std::map<unwind::StackEnd, std::map<std::string, size_t>> ends;
  Timer time_ours, time_libdw, time_libunwind;
  time_ours.Run([&] {
    size_t frames = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].end = unwinder.Unwind((*recording)->stacks[i].input, all[i].frames);
      frames += all[i].frames.size();
    }
    return frames;
  });
  time_libdw.Run([&] {
    size_t frames = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].libdw = libdw->Unwind((*recording)->stacks[i]);
      frames += all[i].libdw.size();
    }
    return frames;
  });
  time_libunwind.Run([&] {
    size_t frames = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const RecordedStack& stack = (*recording)->stacks[i];
      if (stack.input.arch != unwind::Arch::kX86_64) {  // of another build of libunwind
        all[i].libunwind = all[i].libdw;
        continue;
      }
      all[i].libunwind = libunwind->Unwind(stack);
      frames += all[i].libunwind.size();
    }
    return frames;
  });

  std::map<Verdict, size_t> verdicts;
  std::map<Verdict, std::map<std::string, size_t>> places;
  std::map<std::string, size_t> causes;
  for (size_t i = 0; i < all.size(); ++i) {
    const RecordedStack& stack = (*recording)->stacks[i];
    Chains& chains = all[i];
    for (const unwind::Frame& frame : chains.frames) {
      chains.ours.push_back(frame.address.avma.value);
    }
    Trim(stack, chains.ours);
    Trim(stack, chains.libdw);
    Trim(stack, chains.libunwind);
    const Verdict verdict = Judge(chains);
    ++verdicts[verdict];
    const std::string last = chains.ours.empty() ? "(nothing)" : Place(stack, chains.ours.back());
    ++ends[chains.end][fmt::format("in {}", last)];
    if (verdict == Verdict::kAllSame) continue;
    ++causes[Cause(stack, chains)];
    ++places[verdict][PartingPlace(stack, chains)];
  }

  fmt::print("{}: {} stacks\n", path, all.size());
  time_ours.Print("ours");
  time_libdw.Print("libdw");
  time_libunwind.Print("libunwind");
  for (const auto& [end, last] : ends) {
    size_t count = 0;
    for (const auto& [place, n] : last) count += n;
    fmt::print("  ends: {:<26} {:>9}\n", unwind::StackEndName(end), count);
    if (end != unwind::StackEnd::kDumpExhausted) PrintMost(last, examples);
  }
  size_t bad = 0;
  for (const auto& [verdict, count] : verdicts) {
    fmt::print("  {:<42} {:>9} {:>8.3f} %\n", VerdictName(verdict), count,
               100.0 * static_cast<double>(count) / static_cast<double>(all.size()));
    if (verdict == Verdict::kOursDiffers) bad = count;
    PrintMost(places[verdict], examples);
  }
  if (!causes.empty()) fmt::print("  why chains part:\n");
  PrintMost(causes, SIZE_MAX);
  return bad * 1000 > all.size() ? 1 : 0;
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: compare_unwind RECORDING [EXAMPLES]\n", stderr);
    return 2;
  }
  return stackreel::Run(argv[1], argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 5);
}
