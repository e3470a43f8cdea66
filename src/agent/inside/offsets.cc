#include "agent/inside/offsets.h"

#include <cstddef>

#include "tracedata/action_table.h"
#include "tracedata/agent_memory.h"

namespace stackreel::tracedata {

static_assert(offsetof(AgentControl, recording) == CONTROL_RECORDING);
static_assert(offsetof(AgentControl, short_tid_offset) == CONTROL_TID_OFFSET);
static_assert(offsetof(AgentControl, min_duration) == CONTROL_MIN_DURATION);
static_assert(offsetof(AgentControl, actions) == CONTROL_ACTIONS);
static_assert(offsetof(AgentControl, tracing_off) == CONTROL_TRACING_OFF);
static_assert(sizeof(DirectoryEntry) == ENTRY_SIZE);
static_assert(offsetof(DirectoryEntry, thread_pointer) == 0);
static_assert(offsetof(DirectoryEntry, tid) == ENTRY_TID);
static_assert(offsetof(DirectoryEntry, slot) == ENTRY_SLOT);
static_assert(uint64_t{1} << (64 - DIRECTORY_SHIFT) == kDirectoryEntries);
static_assert(sizeof(ThreadSlot) == SLOT_SIZE);
static_assert(offsetof(ThreadSlot, busy) == SLOT_BUSY);
static_assert(offsetof(ThreadSlot, top) == SLOT_TOP);
static_assert(offsetof(ThreadSlot, limit) == SLOT_LIMIT);
static_assert(offsetof(ThreadSlot, write) == SLOT_WRITE);
static_assert(offsetof(ThreadSlot, write_limit) == SLOT_WRITE_LIMIT);
static_assert(offsetof(ThreadSlot, base) == SLOT_BASE);
static_assert(offsetof(ThreadSlot, chunk) == SLOT_CHUNK);
static_assert(offsetof(ThreadSlot, chunk_words) == SLOT_CHUNK_WORDS);
static_assert(offsetof(ThreadSlot, parked_used) == SLOT_PARKED_USED);
static_assert(offsetof(ThreadSlot, actions) == SLOT_ACTIONS);
static_assert(sizeof(OpenCall) == CALL_SIZE);
static_assert(offsetof(OpenCall, place) == CALL_PLACE);
static_assert(offsetof(OpenCall, return_address) == CALL_RETURN_ADDRESS);
static_assert(offsetof(OpenCall, return_point) == CALL_RETURN_POINT);
static_assert(offsetof(OpenCall, start) == CALL_START);
static_assert(offsetof(OpenCall, function) == CALL_FUNCTION);
static_assert(offsetof(OpenCall, state) == CALL_STATE);
static_assert(kMaxFunction + 1 == CALL_BITS);
static_assert(offsetof(ActionTable, functions) == ACTIONS_FUNCTIONS);
static_assert(sizeof(ActionTable) == ACTIONS_OFFSETS);
static_assert((kNoLevelLeft | kOutside | kNotWithin) == STATE_PASSES);
static_assert((kHolding | kDurationMask) == STATE_SLOW);
static_assert(kInherited == STATE_INHERITED);
// Another level is one added.
static_assert(kNoLevelLeft == kLevels && kLevelsGone == 2 * kLevels - 1);
static_assert(offsetof(ChunkHeader, used) == CHUNK_USED);
static_assert(EventHead(EventKind::kCall, 0) == HEAD_CALL);
static_assert(kAgentVersion == AGENT_VERSION);
// What agent.lds says of the memory.
static_assert(kAgentCodeSize == 0x10000 && kControlSize == 0x1000);
static_assert(kControlSize + kForkMarkOffset == 0x11000);
static_assert(kControlSize + kDirectorySize == 0x12000);

}  // namespace stackreel::tracedata
