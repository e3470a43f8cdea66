// What entry.S must know of agent_memory.h, action_table.h and stub.h; offsets.cc holds it to them.
#pragma once

// AgentControl
#define CONTROL_RECORDING 24
#define CONTROL_TID_OFFSET 20
#define CONTROL_MIN_DURATION 32
#define CONTROL_ACTIONS 160
#define CONTROL_TRACING_OFF 168

// DirectoryEntry
#define ENTRY_SIZE 16
#define ENTRY_TID 8
#define ENTRY_SLOT 12
// Multiplied by a thread pointer, its highest bits are where to look first.
#define DIRECTORY_HASH 0x9e3779b97f4a7c15
#define DIRECTORY_SHIFT 52

// ThreadSlot
#define SLOT_SIZE 172224
#define SLOT_BUSY 16
#define SLOT_TOP 24
#define SLOT_LIMIT 32
#define SLOT_WRITE 40
#define SLOT_WRITE_LIMIT 48
#define SLOT_BASE 56
#define SLOT_CHUNK 64
#define SLOT_CHUNK_WORDS 72
#define SLOT_PARKED_USED 96
#define SLOT_ACTIONS 120

// OpenCall
#define CALL_SIZE 40
#define CALL_PLACE 0
#define CALL_RETURN_ADDRESS 8
#define CALL_RETURN_POINT 16
#define CALL_START 24
#define CALL_FUNCTION 32
#define CALL_STATE 36
// A function with a bit at or above this one is not for the short way.
#define CALL_BITS 0x10000000

// ActionTable, and the bits of OpenCall::state
#define ACTIONS_FUNCTIONS 0
#define ACTIONS_OFFSETS 2056
#define STATE_PASSES 0x3800
#define STATE_SLOW 0x00ff4000
#define STATE_INHERITED 0x00ffffff

#define CHUNK_USED 4
#define HEAD_CALL 0x20000000

// From where a stub has called enter.
#define STUB_RETURN_POINT 10
#define STUB_PASS 22
#define FRAMED_RETURN_POINT 2
#define FRAMED_PASS 14
// From the return point to where it has called leave.
#define STUB_LEFT 11

#define AGENT_VERSION 17
