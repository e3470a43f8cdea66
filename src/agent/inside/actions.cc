// Filters and triggers: what becomes of a call by the actions of its function and by the calls that
// are open around it.
#include "agent/inside/agent.h"
#include "agent/inside/system_call.h"

namespace stackreel::agent {
namespace {

using tracedata::ActionTable;
using tracedata::FunctionActions;

const FunctionActions* ActionsOf(const ActionTable& table, uint32_t function) {
  if (function >= table.functions) return nullptr;
  const uint64_t start = AddressOf(&table);
  const auto* offsets = reinterpret_cast<const uint32_t*>(start + sizeof(ActionTable));
  if (offsets[function] == 0) return nullptr;
  return reinterpret_cast<const FunctionActions*>(start + offsets[function]);
}

const tracedata::ValueReads* ValuesIn(const ActionTable& table, const FunctionActions& actions) {
  if (actions.list_size < sizeof(tracedata::ValueReads)) return nullptr;
  return reinterpret_cast<const tracedata::ValueReads*>(AddressOf(&table) + actions.list);
}

bool TracingIsOff() { return agent_control.tracing_off.load(std::memory_order_relaxed) != 0; }
void SwitchTracing(uint32_t flags) {
  if ((flags & tracedata::kTraceOn) != 0) agent_control.tracing_off.store(0);
  if ((flags & tracedata::kTraceOff) != 0) agent_control.tracing_off.store(1);
}

uint32_t WithLevels(uint32_t state, uint32_t gone) {
  return (state & ~tracedata::kLevelsGone) | gone;
}

// What holds within a call of a function with these actions, but for the level that it takes.
uint32_t Act(const ActionTable& table, uint32_t state, const FunctionActions& actions) {
  const uint32_t flags = actions.flags;
  if ((state & tracedata::kNotWithin) != 0) return state;
  if ((flags & tracedata::kEnds) != 0) return state | tracedata::kNotWithin;
  if ((flags & tracedata::kBegins) != 0) {
    state = WithLevels(state & ~tracedata::kOutside, table.root_state & tracedata::kLevelsGone);
  }
  if ((state & tracedata::kOutside) != 0) return state;
  if ((flags & tracedata::kSetsLevels) != 0) {
    state = WithLevels(state, tracedata::kLevels - actions.levels);
  }
  if ((flags & tracedata::kSetsDuration) != 0) {
    state &= ~tracedata::kDurationMask;
    state |= uint32_t{actions.duration} << tracedata::kDurationShift;
  }
  return state;
}

bool IsWithin(uint32_t state) {
  return (state & (tracedata::kNotWithin | tracedata::kOutside)) == 0;
}

// The states of open calls, made anew by the table that is in force now.
void Adopt(ThreadSlot& slot, const ActionTable& table) {
  slot.actions = AddressOf(&table);
  slot.calls[0].state = table.root_state;
  uint32_t around = table.root_state;
  const auto adopt = [&table](OpenCall& call, uint32_t state) {
    if (const auto* actions = ActionsOf(table, FunctionOf(call)))
      state = Act(table, state, *actions);
    const bool counts = (call.state & tracedata::kSilent) == 0 && IsWithin(state) &&
                        (state & tracedata::kNoLevelLeft) == 0;
    call.state = (call.state & ~tracedata::kInherited) | (counts ? state + 1 : state);
    return call.state & tracedata::kInherited;
  };
  for (OpenCall* call = slot.calls + 1; call < Top(slot); ++call) {
    if (call->place != 0)
      around = adopt(*call, around);
    else
      call->state = around;
  }
  if (slot.parked_used == 0) return;
  for (OpenCall& call : slot.parked) {
    if (call.place > kTombstone) adopt(call, table.root_state);
  }
}

// The state in which a call at `place` is made. A fiber that has come back goes on among calls that
// were parked: there the nearest one above is looked for, too.
uint32_t StateAround(ThreadSlot& slot, uint64_t place) {
  const OpenCall* nearest = Top(slot) - 1;
  if (slot.parked_used != 0) {
    for (const OpenCall& call : slot.parked) {
      if (call.place > place && call.place < nearest->place) nearest = &call;
    }
    ReadablePages pages;
    const bool lives =
        nearest == Top(slot) - 1 ||
        (pages.Contains(nearest->place) && WordAt(nearest->place) == nearest->return_point);
    if (!lives) nearest = Top(slot) - 1;
  }
  return nearest->state & tracedata::kInherited;
}

}  // namespace

CallPlan PlanCall(ThreadSlot& slot, uint32_t function, uint64_t place) {
  CallPlan plan;
  const auto* table =
      reinterpret_cast<const ActionTable*>(agent_control.actions.load(std::memory_order_acquire));
  if (table == nullptr) return plan;
  if (slot.actions != AddressOf(table)) Adopt(slot, *table);
  const uint32_t around = StateAround(slot, place);
  const FunctionActions* actions = ActionsOf(*table, function);
  uint32_t flags = actions != nullptr ? actions->flags : 0;
  plan.state = actions != nullptr ? Act(*table, around, *actions) : around;
  if (IsWithin(plan.state)) {
    SwitchTracing(flags);
  } else {
    flags = 0;
  }
  const bool records = IsWithin(plan.state) && (plan.state & tracedata::kNoLevelLeft) == 0 &&
                       (flags & tracedata::kUnrecorded) == 0 && !TracingIsOff();
  if (!records) {
    plan.opens = plan.state != around;
    plan.state |= tracedata::kSilent;
    plan.bits = tracedata::kLeftBit;
    return plan;
  }
  ++plan.state;
  if ((flags & tracedata::kLeadsHere) != 0) {
    plan.leads_here = true;
  } else if ((plan.state & tracedata::kHolding) != 0) {
    plan.state |= tracedata::kHeld;
    plan.bits = tracedata::kLeftBit;
  }
  if (actions != nullptr) {
    // Of a call that is held back nobody knows yet whether it will be told of.
    if ((plan.state & tracedata::kHeld) == 0) plan.values = ValuesIn(*table, *actions);
    if (actions->list_size != 0) plan.bits |= tracedata::kActs;
  }
  if ((flags & tracedata::kAlways) != 0) plan.state |= tracedata::kKept;
  if ((plan.state & (tracedata::kDurationMask | tracedata::kKept)) != 0) {
    plan.bits |= tracedata::kActs;
  }
  return plan;
}

const tracedata::ValueReads* ValuesOf(uint32_t function) {
  const auto* table =
      reinterpret_cast<const ActionTable*>(agent_control.actions.load(std::memory_order_acquire));
  const FunctionActions* actions = table == nullptr ? nullptr : ActionsOf(*table, function);
  return actions == nullptr ? nullptr : ValuesIn(*table, *actions);
}

uint64_t LeastDuration(const OpenCall& call) {
  if ((call.state & tracedata::kKept) != 0) return 0;
  const uint32_t i = (call.state & tracedata::kDurationMask) >> tracedata::kDurationShift;
  const auto* table =
      reinterpret_cast<const ActionTable*>(agent_control.actions.load(std::memory_order_acquire));
  if (i == 0 || table == nullptr) {
    return agent_control.min_duration.load(std::memory_order_relaxed);
  }
  return table->durations[i];
}

void KeepCaller(const OpenCall& call) {
  // The sentinel is never reached: its place is no call's, but neither is it left.
  for (OpenCall* caller = const_cast<OpenCall*>(&call) - 1; caller->place != kHighestPlace;
       --caller) {
    if (caller->place == 0 || (caller->function & tracedata::kLeftBit) != 0) continue;
    caller->state |= tracedata::kKept;
    caller->function |= tracedata::kActs;
    return;
  }
}

}  // namespace stackreel::agent
