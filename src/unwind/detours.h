// What a tracer has put between the functions of a process and their callers, as far as unwinding
// meets it: stubs, the agent that they call, and return addresses that lead back to them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace stackreel::unwind {

// From `offset` of a stub on, where a thread that is there stands in the function's own terms.
struct DetourRow {
  enum class Kind : uint8_t {
    kCode,   // it is at `code`, with the stack pointer at sp + `sp`
    kPlace,  // it is about to enter the function or has returned: the return address is at sp +
             // `sp`
  };
  Kind kind = Kind::kPlace;
  bool after_call = false;  // `offset` is where a routine of the agent returns to
  uint8_t offset = 0;
  int8_t sp = 0;
  uint64_t code = 0;
};

// The stub of one function.
struct Detour {
  uint64_t begin = 0, end = 0;
  uint64_t function = 0;        // the code that it stands for begins here
  uint64_t return_point = 0;    // where the function returns to, in the stub; 0: to its caller
  uint32_t number = 0;          // what the stub pushes before it calls the agent
  std::vector<DetourRow> rows;  // ascending

  [[nodiscard]] const DetourRow* RowAt(uint64_t pc) const;
};

// A call whose return address is kept elsewhere than at its `place`, the word of the stack where
// `return_point` stands instead.
struct OpenReturn {
  uint64_t place = 0;
  uint64_t return_point = 0;
  uint64_t return_address = 0;  // or another's return point: a tail call was made
  uint64_t start = 0;           // ticks when it began
  bool is_open = false;         // still; else only what is left of it was found
  friend bool operator==(const OpenReturn&, const OpenReturn&) = default;
};

// All of one process. Unwinders only read it; nobody may change it meanwhile.
class Detours {
 public:
  struct Range {
    uint64_t begin = 0, end = 0;
    [[nodiscard]] bool Contains(uint64_t at) const { return at - begin < end - begin; }
  };

  void SetAgent(Range code) { agent_ = code; }
  [[nodiscard]] bool IsInAgent(uint64_t pc) const { return agent_.Contains(pc); }

  // Whether there is something at `pc` that is not the process's own.
  [[nodiscard]] bool Covers(uint64_t pc) const { return IsInAgent(pc) || Find(pc) != nullptr; }

  // Instead of what was there before.
  void SetStubs(std::vector<Detour> stubs);
  // The stub that `pc` is in; null: none.
  [[nodiscard]] const Detour* Find(uint64_t pc) const {
    return all_.Contains(pc) ? FindStub(pc) : nullptr;
  }
  // The stub that `word` is the return point of.
  [[nodiscard]] const Detour* ByReturnPoint(uint64_t word) const {
    const Detour* detour = Find(word);
    return detour != nullptr && detour->return_point == word ? detour : nullptr;
  }

  // Calls that are open, and others that were, instead of those that were set before. Where their
  // functions return to is remembered.
  void SetOpen(std::vector<OpenReturn> open);
  // Remembers where the functions of these return to, no more.
  void Learn(std::span<const OpenReturn> open);

  // Where a function may return to whose `return_point` stands at `place`, most likely first.
  struct Candidates {
    // It is this: the call began before `ticks`, when the stack was as it is, and is open still.
    std::optional<OpenReturn> sure;
    std::vector<uint64_t> likely;
  };
  // `ticks` 0: the time is not known.
  void FindReturns(uint64_t place, uint64_t return_point, uint64_t ticks, Candidates& out) const;
  // What was learnt of where functions return to, for a copy of the process.
  void LearnFrom(const Detours& other) { known_ = other.known_; }

 private:
  [[nodiscard]] const Detour* FindStub(uint64_t pc) const;

  Range agent_, all_;
  std::vector<Detour> stubs_;     // ascending
  std::vector<OpenReturn> open_;  // by place, then the newest first
  // Return point → the addresses that its function has returned to, the newest last.
  std::map<uint64_t, std::vector<uint64_t>> known_;
};

}  // namespace stackreel::unwind
