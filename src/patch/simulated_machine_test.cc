#include "patch/simulated_machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "patch/quiesce.h"
#include "patch/trap.h"

namespace stackreel::patch {
namespace {

constexpr uint16_t kAgentCall = 0x8000;  // on a stack: a return address that the program knows not
constexpr uint16_t kPushed = 1;          // on a stack: what a push of a register left

size_t Offset(uint16_t at) {
  CHECK(at >= kSimBase && at < kSimBase + kSimSize);
  return at - size_t{kSimBase};
}
bool InMemory(uint16_t at) { return at >= kSimBase && at < kSimBase + kSimSize; }

// A number for "the thread did this"; with the addresses that it shows to the program.
uint32_t Doing(uint8_t what, uint16_t a = 0, uint16_t b = 0) {
  return static_cast<uint32_t>(what) << 24 | (a & 0xfffU) << 12 | (b & 0xfffU);
}
uint32_t Doing(ByteView instruction) {
  uint32_t hash = 2166136261U;
  for (const uint8_t byte : instruction) hash = (hash ^ byte) * 16777619U;
  return hash;
}
int32_t Displacement32(ByteView instruction) {
  return LoadUnaligned<int32_t>(instruction.data() + 1, Endian::kLittle);
}

}  // namespace

size_t SimLength(ByteView b) {
  const auto next = [&](size_t known, auto&& of) -> size_t {
    return b.size() > known ? of(b[known]) : known + 1;
  };
  switch (b[0]) {
    case 0x0f:
      return next(1, [&](uint8_t second) -> size_t {
        if (second == 0x05) return 2;
        if (second != 0x1f) return 0;
        return next(2, [](uint8_t modrm) -> size_t {
          return modrm == 0x00 ? 3 : modrm == 0x40 ? 4 : modrm == 0x44 ? 5 : 0;
        });
      });
    case 0x31:
      return 2;
    case 0x48:
      return next(1, [](uint8_t second) -> size_t {
        return second == 0x89 ? 3 : second == 0x83 ? 4 : 0;
      });
    case 0x66:
      return next(1, [](uint8_t second) -> size_t { return second == 0x90 ? 2 : 0; });
    case 0xe8:
    case 0xe9:
      return 5;
    case 0xeb:
    case kSimRecord:
      return 2;
    case 0x90:
    case 0xc3:
    case 0xcc:
    case kSimSignalReturn:
      return 1;
    default:
      if (b[0] >= 0x50 && b[0] < 0x60) return 1;
      return b[0] >= 0xb8 && b[0] < 0xc0 ? 5 : 0;
  }
}

SimProgram::SimProgram() { memory_.fill(kSimFreed); }

uint16_t SimProgram::Code(uint16_t at, const std::vector<std::string>& instructions) {
  for (const std::string& text : instructions) {
    const std::vector<uint8_t> bytes = Hex(text);
    std::ranges::copy(bytes, memory_.begin() + static_cast<long>(Offset(at)));
    may_run_[Offset(at)].push_back(bytes);
    own_trap_[Offset(at)] = bytes == std::vector<uint8_t>{kTrapByte};
    at = static_cast<uint16_t>(at + bytes.size());
  }
  return at;
}

void SimProgram::AddSite(Site site, const std::vector<std::string>& stub_then) {
  site.function = static_cast<uint32_t>(sites_.size());
  site.original = SiteBytes(ByteView(memory_).subspan(
      Offset(static_cast<uint16_t>(site.begin().value)), site.original.length));
  const bool call = site.patched.length > 0 && site.patched.bytes[0] == 0xe8;
  site.patched = *MakePatchedForm(site);
  if (call) site.patched.bytes[0] = 0xe8;
  const auto checked = CheckSite(site);
  EXPECT_TRUE(checked) << checked.error().ToString();
  const auto stub = static_cast<uint16_t>(site.stub.value);
  const uint16_t then = Code(stub, {fmt::format("{:02x} {:02x}", kSimRecord, site.function)});
  Code(then, stub_then);
  // What may be run of the patched form: at its entry, and at its landing.
  const auto allow = [&](Avma at) {
    const size_t offset = at - site.begin();
    const ByteView rest = site.patched.view().subspan(offset);
    const ByteView instruction = rest.first(SimLength(rest));
    may_run_[Offset(static_cast<uint16_t>(at.value))].emplace_back(instruction.begin(),
                                                                   instruction.end());
  };
  allow(site.address);
  if (const auto landing = site.Landing()) allow(*landing);
  may_run_[Offset(static_cast<uint16_t>(site.address.value))].push_back({kTrapByte});
  sites_.push_back(site);
}

void SimProgram::AddThread(uint16_t start, uint16_t handler) {
  CHECK(threads_.size() < kSimMaxThreads);
  threads_.push_back({start, handler, {}, {}});
}

void SimProgram::Finish() {
  for (Thread& thread : threads_) {
    thread.does = Reference(thread.start);
    if (thread.handler != 0) thread.handler_does = Reference(thread.handler);
  }
}

// Runs alone, in memory as it is, until it comes back to `start` or returns from the signal.
std::vector<uint32_t> SimProgram::Reference(uint16_t start) const {
  SimProgram alone;
  alone.memory_ = memory_;
  alone.may_run_ = may_run_;
  alone.own_trap_ = own_trap_;
  alone.threads_.push_back({start, 0, {}, {}});
  SimMachine machine(alone);
  std::vector<uint32_t> does;
  SimState state = machine.Start();
  state.threads[0].in_handler = 1;  // a signal return ends it at a place that is nowhere
  machine.Record(&does);
  do {
    // The first way is the one in which a system call comes to its end.
    SimState after = state;
    bool first = true;
    machine.StepThread(state, 0, [&](const SimState& next, bool) {
      if (std::exchange(first, false)) after = next;
    });
    state = after;
    CHECK(machine.violation().empty() && does.size() < 100);
  } while (state.threads[0].now.ip != start && state.threads[0].in_handler == 1);
  return does;
}

bool SimProgram::MayRun(uint16_t at, ByteView instruction) const {
  return std::ranges::any_of(may_run_[Offset(at)], [&](const std::vector<uint8_t>& allowed) {
    return std::ranges::equal(allowed, instruction);
  });
}
bool SimProgram::HasTrap(uint16_t at) const { return own_trap_[Offset(at)]; }

int SimProgram::SiteAt(uint16_t address) const {
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (sites_[i].address.value == address) return static_cast<int>(i);
  }
  return -1;
}

SimState SimMachine::Start() const {
  SimState state;
  state.memory = program_.memory();
  for (size_t t = 0; t < program_.threads().size(); ++t) {
    state.threads[t].now.ip = program_.threads()[t].start;
    state.threads[t].script = static_cast<uint8_t>(t);
    // Threads that run the same are the same.
    for (size_t other = 0; other < t; ++other) {
      const auto& a = program_.threads()[t];
      const auto& b = program_.threads()[other];
      if (a.start == b.start && a.handler == b.handler) {
        state.threads[t].script = state.threads[other].script;
        break;
      }
    }
  }
  return state;
}

void SimMachine::Violate(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

// All that the core can have fetched at ip.
void SimMachine::Fetch(const SimState& state, const SimThread& thread,
                       const std::function<void(ByteView)>& each) {
  std::array<uint8_t, 16> bytes;
  const auto complete = [&](auto&& self, size_t known) -> void {
    if (known > 0) {
      const size_t length = SimLength({bytes.data(), known});
      if (length == known) return each({bytes.data(), known});
      if (length == 0) return each({bytes.data(), known});
    }
    const auto at = static_cast<uint16_t>(thread.now.ip + known);
    if (!InMemory(at)) return Violate(fmt::format("runs out of memory at {:#x}", at));
    std::array<uint8_t, kSimMaxStores + 1> values;
    size_t count = 0;
    const auto add = [&](uint8_t value) {
      if (std::find(values.begin(), values.begin() + count, value) == values.begin() + count) {
        values[count++] = value;
      }
    };
    for (size_t i = thread.synced_to; i < state.store_count; ++i) {
      if (state.stores[i].at != at) continue;
      if (count == 0) add(state.stores[i].before);
      add(state.stores[i].after);
    }
    if (count == 0) add(state.memory[Offset(at)]);
    for (size_t i = 0; i < count; ++i) {
      bytes[known] = values[i];
      self(self, known + 1);
    }
  };
  complete(complete, 0);
}

void SimMachine::StepThread(const SimState& state, size_t t, const Sink& sink) {
  const SimThread& thread = state.threads[t];
  if (thread.trap != 0) {
    SimState next = state;
    return StepTrap(next, next.threads[t], sink);
  }
  const uint16_t handler = program_.threads()[thread.script].handler;
  if (handler != 0 && thread.in_handler == 0) {
    // A system call is interrupted by setting the thread back to it, or by ending it early.
    for (int back = 0; back <= (thread.now.in_syscall != 0 ? 1 : 0); ++back) {
      SimState next = state;
      SimThread& interrupted = next.threads[t];
      interrupted.interrupted = interrupted.now;
      if (back == 1) {
        interrupted.interrupted.ip -= 2;
        interrupted.interrupted.in_syscall = 0;
      }
      interrupted.now = {};
      interrupted.now.ip = handler;
      interrupted.in_handler = 1;
      sink(next, false);
    }
  }
  if (thread.now.in_syscall != 0) {
    SimState done = state;
    done.threads[t].now.in_syscall = 0;
    Do(done.threads[t], Doing(0x05));
    sink(done, true);
    SimState restarted = state;
    restarted.threads[t].now.in_syscall = 0;
    restarted.threads[t].now.ip -= 2;
    return sink(restarted, true);  // that it may be so for ever is the program's own affair
  }
  Fetch(state, thread, [&](ByteView instruction) {
    if (!program_.MayRun(thread.now.ip, instruction)) {
      std::string bytes;
      for (const uint8_t byte : instruction) bytes += fmt::format(" {:02x}", byte);
      return Violate(
          fmt::format("runs{} at {:#x}, which nobody wrote there", bytes, thread.now.ip));
    }
    SimState next = state;
    Execute(next, t, instruction, sink);
  });
}

void SimMachine::EnterSite(SimState& state, SimThread& thread) const {
  const int site = program_.SiteAt(thread.now.ip);
  if (site < 0) return;
  thread.now.entered = static_cast<uint8_t>(site + 1);
  thread.now.recorded = 0;
  switch (state.site_state[static_cast<size_t>(site)]) {
    case static_cast<uint8_t>(SiteState::kPatched):
      thread.now.expected = 1;
      break;
    case static_cast<uint8_t>(SiteState::kOriginal):
    case static_cast<uint8_t>(SiteState::kDeferred):
    case static_cast<uint8_t>(SiteState::kAsideLeft):
      thread.now.expected = 0;
      break;
    default:
      thread.now.expected = 2;
  }
}

// The thread does something that the program can see.
void SimMachine::Do(SimThread& thread, uint32_t what) {
  if (recording_ != nullptr) {
    recording_->push_back(what);
    return;
  }
  SimContext& now = thread.now;
  if (now.entered != 0) {
    if (now.recorded > 1) Violate("a call was recorded twice");
    if (now.expected == 1 && now.recorded == 0) Violate("a call of a patched function was lost");
    if (now.expected == 0 && now.recorded != 0)
      Violate("a call of an unpatched function was recorded");
    now.entered = now.expected = now.recorded = 0;
  }
  const SimProgram::Thread& script = program_.threads()[thread.script];
  const std::vector<uint32_t>& does = thread.in_handler != 0 ? script.handler_does : script.does;
  if (now.position >= does.size() || does[now.position] != what) {
    return Violate(fmt::format("at {:#x} does {:#x}, not what the program does", now.ip, what));
  }
  ++now.position;
  if (thread.in_handler == 0 && now.position == does.size()) now.position = 0;
}

void SimMachine::Execute(SimState& state, size_t t, ByteView instruction, const Sink& sink) {
  SimThread& thread = state.threads[t];
  SimContext& now = thread.now;
  EnterSite(state, thread);
  const auto behind = static_cast<uint16_t>(now.ip + instruction.size());
  const uint8_t opcode = instruction[0];
  uint16_t target = behind;
  bool did = true;
  const auto push = [&](uint16_t value) {
    if (thread.depth == thread.stack.size()) return Violate("stack overflow");
    thread.stack[thread.depth++] = value;
  };
  const auto pop = [&]() -> uint16_t {
    if (thread.depth == 0) {
      Violate("stack underflow");
      return 0;
    }
    const uint16_t value = thread.stack[--thread.depth];
    thread.stack[thread.depth] = 0;
    return value;
  };
  switch (opcode) {
    case 0xe8:
      target = static_cast<uint16_t>(behind + Displacement32(instruction));
      did = target < kSimOutOfLine;
      if (did) Do(thread, Doing(opcode, target, behind));
      push(did ? behind : static_cast<uint16_t>(behind | kAgentCall));
      break;
    case 0xc3:
      target = pop();
      did = (target & kAgentCall) == 0;
      if (did) Do(thread, Doing(opcode, target));
      target &= static_cast<uint16_t>(~kAgentCall);
      break;
    case 0xe9:
      target = static_cast<uint16_t>(behind + Displacement32(instruction));
      did = false;
      break;
    case 0xeb:
      target = static_cast<uint16_t>(behind + static_cast<int8_t>(instruction[1]));
      did = false;
      break;
    case kTrapByte:
      thread.trap = static_cast<uint8_t>(TrapPhase::kPending);
      did = false;
      break;
    case kSimRecord:
      ++events_.recorded;
      if (now.entered != instruction[1] + 1) Violate("recorded a call that was none");
      ++now.recorded;
      did = false;
      break;
    case kSimSignalReturn:
      Do(thread, Doing(opcode));
      now = thread.interrupted;
      thread.interrupted = {};
      thread.in_handler = 0;
      return sink(state, true);
    case 0x0f:
      did = false;
      if (instruction[1] == 0x05) now.in_syscall = 1;
      break;
    case 0x66:
    case 0x90:
      did = false;
      break;
    default:
      Do(thread, Doing(instruction));
      if (opcode >= 0x50 && opcode < 0x58) push(kPushed);
      if (opcode >= 0x58 && opcode < 0x60 && pop() != kPushed) Violate("popped a return address");
  }
  now.ip = target;
  sink(state, did);
}

void SimMachine::StepTrap(SimState& state, SimThread& thread, const Sink& sink) {
  const auto load = [&] {
    thread.table = state.table;
    thread.table_is_old = 0;
    thread.trap = static_cast<uint8_t>(TrapPhase::kLoaded);
  };
  // HandleTrap of trap.h, stopped before each of its loads.
  switch (static_cast<TrapPhase>(thread.trap)) {
    case TrapPhase::kNone:
      return;
    case TrapPhase::kPending:
      load();
      return sink(state, false);
    case TrapPhase::kLookAgain:
      if (thread.table_is_old != 0) {
        ++events_.traps_looked_again;
        load();
        return sink(state, false);
      }
      if (!program_.HasTrap(static_cast<uint16_t>(thread.now.ip - 1))) {
        return Violate(fmt::format("the program was sent a trap at {:#x}", thread.now.ip - 1));
      }
      ++events_.own_traps;
      Do(thread, Doing(kTrapByte));
      thread.trap = thread.table = 0;
      return sink(state, true);
    case TrapPhase::kLoaded:
      break;
  }
  const TrapDecision decision =
      DecideTrap(tables_[thread.table], Avma(thread.now.ip),
                 state.memory[Offset(static_cast<uint16_t>(thread.now.ip - 1))]);
  if (decision.action == TrapAction::kProgram) {
    thread.trap = static_cast<uint8_t>(TrapPhase::kLookAgain);
    return sink(state, false);
  }
  ++(decision.action == TrapAction::kGoOn ? events_.traps_gone_on : events_.traps_retried);
  if (decision.return_address.value != 0) {
    thread.stack[thread.depth++] =
        static_cast<uint16_t>(decision.return_address.value | kAgentCall);
  }
  thread.now.ip = static_cast<uint16_t>(decision.to.value);
  thread.trap = thread.table = thread.table_is_old = 0;
  thread.synced_to = state.store_count;
  sink(state, false);
}

void SimMachine::Write(SimState& state, uint16_t at, ByteView bytes) const {
  for (const uint8_t byte : bytes) {
    uint8_t& there = state.memory[Offset(at)];
    if (there != byte) {
      CHECK(state.store_count < kSimMaxStores);
      state.stores[state.store_count++] = {at, there, byte};
      there = byte;
    }
    ++at;
  }
}

void SimMachine::Sync(SimState& state, size_t cores) const {
  const size_t threads = program_.threads().size();
  for (size_t t = 0; t < threads && t < cores; ++t) state.threads[t].synced_to = state.store_count;
  uint8_t seen = state.store_count;
  for (size_t t = 0; t < threads; ++t) seen = std::min(seen, state.threads[t].synced_to);
  const auto kept =
      std::shift_left(state.stores.begin(), state.stores.begin() + state.store_count, seen);
  std::fill(kept, state.stores.end(), SimStore{});
  state.store_count = static_cast<uint8_t>(state.store_count - seen);
  for (size_t t = 0; t < threads; ++t) {
    state.threads[t].synced_to = static_cast<uint8_t>(state.threads[t].synced_to - seen);
  }
}

void SimMachine::Publish(SimState& state, std::span<const TrapEntry> entries) {
  auto known = std::ranges::find_if(tables_, [&](const std::vector<TrapEntry>& table) {
    return std::ranges::equal(table, entries);
  });
  if (known == tables_.end()) {
    tables_.emplace_back(entries.begin(), entries.end());
    known = tables_.end() - 1;
  }
  state.table = static_cast<uint8_t>(known - tables_.begin());
  for (SimThread& thread : state.threads) {
    if (thread.trap > static_cast<uint8_t>(TrapPhase::kPending)) thread.table_is_old = 1;
  }
}

void SimMachine::Examine(SimState& state, size_t t, std::span<const Site* const> sites, Form inside,
                         bool move) {
  SimThread& thread = state.threads[t];
  thread.examined = 1;
  const auto clear = [&](SimContext& context, bool trap_pending) {
    const CodePosition position = {Avma(context.ip), trap_pending, context.in_syscall != 0};
    const ClearDecision decision = DecideClearing(position, sites, inside);
    if (decision.action == ClearAction::kLeave) return;
    if (decision.action == ClearAction::kMove && move) {
      context.ip = static_cast<uint16_t>(decision.to.value);
      ++events_.moved;
    } else {
      state.deferred |= static_cast<uint8_t>(1 << decision.site);
      ++events_.deferred;
    }
  };
  clear(thread.now, thread.trap != 0);
  if (thread.in_handler != 0) clear(thread.interrupted, false);
}

bool SimMachine::MayMeet(const SimState& state, size_t threads, uint16_t from, uint16_t size) {
  const auto holds = [&](uint16_t at) { return at >= from && at < from + size; };
  return std::any_of(state.threads.begin(), state.threads.begin() + static_cast<long>(threads),
                     [&](const SimThread& thread) {
                       return thread.trap != 0 || holds(thread.now.ip) ||
                              (thread.in_handler != 0 && holds(thread.interrupted.ip)) ||
                              std::ranges::any_of(thread.stack, [&](uint16_t value) {
                                return holds(value & static_cast<uint16_t>(~kAgentCall));
                              });
                     });
}

}  // namespace stackreel::patch
