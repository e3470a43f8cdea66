// Times of samples as ticks of function traces.
#pragma once

#include <cstdint>
#include <optional>

namespace stackreel::record {

// CLOCK_MONOTONIC → the processor's time stamp counter. The two are read together now and then;
// what lies between is on a straight line, as the kernel adjusts its clock by parts in a million.
class TickClock {
 public:
  // `clockid`: what samples' times are of. Of others than CLOCK_MONOTONIC nothing is told.
  explicit TickClock(std::optional<int32_t> clockid);
  void Measure();
  // The latest ticks that are surely over at `time`; 0: not known. `kernel_clock`: ticks are
  // nanoseconds of CLOCK_MONOTONIC.
  [[nodiscard]] uint64_t TicksAt(uint64_t time, bool kernel_clock) const;

 private:
  struct Moment {
    uint64_t ticks = 0, nanoseconds = 0;
  };
  static Moment Now();

  bool known_;
  Moment first_, last_;
};

}  // namespace stackreel::record
