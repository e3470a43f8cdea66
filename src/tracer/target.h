// The process that is traced: its memory at any time, its threads while it is held.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/agent_memory_reader.h"
#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"
#include "os/file.h"
#include "os/own_ids.h"
#include "os/proc.h"
#include "os/stopped_process.h"
#include "os/urgent_section.h"
#include "patch/room.h"
#include "tracer/harmful_filters.h"

namespace stackreel::tracer {

class Target {
 public:
  // Refuses what cannot be traced at all, with cause and cure: a process that is gone, of somebody
  // else, or of 32 bits. Whether threads can be held shows when they are.
  static Result<std::unique_ptr<Target>> Open(uint32_t pid);

  [[nodiscard]] uint32_t pid() const { return pid_; }

  // Memory, running or not; written also where its protection does not let it be. kNotFound: it is
  // not mapped, or the process has ended.
  Status Read(Avma at, std::span<uint8_t> out) const;
  Status Write(Avma at, ByteView bytes) const;
  template <typename T>
  Result<T> ReadObject(Avma at) const {
    T value;
    TRY(Read(at, {reinterpret_cast<uint8_t*>(&value), sizeof(value)}));
    return value;
  }
  template <typename T>
  Status WriteObject(Avma at, const T& value) const {
    return Write(at, {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
  }

  // Whether the memory that was opened is nobody's any more: the process has ended, is about to, or
  // runs another program.
  [[nodiscard]] bool MemoryIsGone() const;

  // Holds all threads until LetGo has been called as often. Holding what is held costs nothing.
  Status Hold();
  Status LetGo();
  [[nodiscard]] bool held() const { return held_ != nullptr; }
  // Only while held.
  [[nodiscard]] os::StoppedProcess& threads() { return *held_; }
  // A system call that must not fail, made by one of its threads. Refused, as by HarmfulFilters, if
  // it might be fatal to each of them.
  Result<uint64_t> SystemCall(const char* name, int64_t number,
                              const std::array<uint64_t, 6>& arguments);
  [[nodiscard]] HarmfulFilters& filters() { return filters_; }
  // How long the threads were held at most, from when the first was asked to stop to when the last
  // was let go, and how often.
  [[nodiscard]] std::chrono::microseconds longest_hold() const { return longest_hold_; }
  [[nodiscard]] std::chrono::microseconds last_hold() const { return last_hold_; }
  [[nodiscard]] uint32_t holds() const { return holds_; }

 private:
  Target(uint32_t pid, os::Fd memory) : pid_(pid), memory_(std::move(memory)), filters_(pid) {}

  uint32_t pid_;
  os::Fd memory_;
  HarmfulFilters filters_;
  std::unique_ptr<os::StoppedProcess> held_;
  std::optional<os::UrgentSection> urgent_;  // while it is held
  int holders_ = 0;
  std::chrono::steady_clock::time_point held_since_;
  std::chrono::microseconds longest_hold_ = {}, last_hold_ = {};
  uint32_t holds_ = 0;
};

// What agent/ reads a target's memory by, while that lives.
inline agent::ReadMemory ReaderOf(const Target& target) {
  return [&target](Avma at, std::span<uint8_t> out) { return target.Read(at, out); };
}

// Holds a target while it lives.
class Holding {
 public:
  static Result<Holding> Of(Target& target) {
    TRY(target.Hold());
    return Holding(target);
  }
  Holding(Holding&& other) noexcept : target_(std::exchange(other.target_, nullptr)) {}
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  Holding& operator=(Holding&&) = delete;
  ~Holding() {
    if (target_ != nullptr) (void)target_->LetGo();
  }

 private:
  explicit Holding(Target& target) : target_(&target) {}
  Target* target_;
};

using os::OwnIds;

// The mappings of a process as ranges, ascending.
std::vector<patch::AddressRange> RangesOf(const std::vector<os::ProcMapping>& maps);

}  // namespace stackreel::tracer
