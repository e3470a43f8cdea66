#include "tracer/trace_clock.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <string>

#include "os/file.h"
#include "os/proc.h"

namespace stackreel::tracer {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

std::atomic<TickSource> tick_source = TickSource::kCounter;

uint64_t Nanoseconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return (static_cast<uint64_t>(now.tv_sec) * kSecond) + static_cast<uint64_t>(now.tv_nsec);
}

struct Moment {
  uint64_t ticks = 0;
  uint64_t nanoseconds = 0;
};

// Both clocks at one moment: of several readings the one that took least.
Moment Now() {
  constexpr int kReadings = 20;
  Moment best;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < kReadings; ++i) {
    const uint64_t before = NowTicks();
    const uint64_t time = Nanoseconds(CLOCK_MONOTONIC);
    const uint64_t after = NowTicks();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (least / 2), time};
  }
  return best;
}

uint64_t Rate(const Moment& from, const Moment& to) {
  if (to.nanoseconds <= from.nanoseconds || to.ticks <= from.ticks) return kSecond;
  using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{to.ticks - from.ticks} * kSecond /
                               (to.nanoseconds - from.nanoseconds));
}

std::string FirstValue(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return "";
  const size_t colon = text.find(':', at);
  const size_t end = std::min(text.find('\n', at), text.size());
  if (colon == std::string::npos || colon + 2 > end) return "";
  return text.substr(colon + 2, end - colon - 2);
}

}  // namespace

void SetTickSource(TickSource source) { tick_source = source; }
bool UsesKernelClock() { return tick_source == TickSource::kKernel; }

uint64_t NowTicks() {
  if (UsesKernelClock()) return Nanoseconds(CLOCK_MONOTONIC);
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;  // nothing is traced on this CPU
#endif
}

ClockMeasurement::ClockMeasurement() {
  const Moment now = Now();
  ticks_ = now.ticks;
  nanoseconds_ = now.nanoseconds;
}

tracedata::TraceClock ClockMeasurement::Finish() const {
  if (UsesKernelClock()) {
    return {.origin_ticks = nanoseconds_,
            .origin_nanoseconds = nanoseconds_,
            .ticks_per_second = kSecond,
            .realtime_offset = Nanoseconds(CLOCK_REALTIME) - Nanoseconds(CLOCK_MONOTONIC)};
  }
  constexpr uint64_t kLeast = 10'000'000;
  if (const uint64_t passed = Nanoseconds(CLOCK_MONOTONIC) - nanoseconds_; passed < kLeast) {
    const timespec pause = {.tv_sec = 0, .tv_nsec = static_cast<long>(kLeast - passed)};
    nanosleep(&pause, nullptr);
  }
  return {.origin_ticks = ticks_,
          .origin_nanoseconds = nanoseconds_,
          .ticks_per_second = Rate({ticks_, nanoseconds_}, Now()),
          .realtime_offset = Nanoseconds(CLOCK_REALTIME) - Nanoseconds(CLOCK_MONOTONIC)};
}

tracedata::TraceClock RefineClock(const tracedata::TraceClock& since) {
  if (UsesKernelClock()) return since;
  tracedata::TraceClock clock = since;
  clock.ticks_per_second = Rate({since.origin_ticks, since.origin_nanoseconds}, Now());
  return clock;
}

tracedata::TraceHost DescribeHost(uint32_t pid) {
  tracedata::TraceHost host;
  if (auto text = os::ReadTextFile("/proc/" + std::to_string(pid) + "/cmdline")) {
    if (text->ends_with('\0')) text->pop_back();
    std::ranges::replace(*text, '\0', ' ');
    host.command_line = std::move(*text);
  }
  utsname names = {};
  if (uname(&names) == 0) {
    host.host_name = names.nodename;
    host.kernel = names.release;
  }
  if (const auto text = os::ReadTextFile("/proc/cpuinfo")) {
    host.cpu = FirstValue(*text, "model name");
  }
  host.cpus = os::ConfiguredCpuCount();
  host.memory_bytes = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES))) *
                      static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return host;
}

}  // namespace stackreel::tracer
