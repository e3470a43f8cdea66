// What is put into a traced process: the agent's code, and a stub for each patched function. As
// bytes; who writes them there is tracer/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "patch/site.h"
#include "unwind/detours.h"

namespace stackreel::agent {

// The agent's code: position-independent, without relocations, libc or thread-local storage. It
// begins with a tracedata::AgentCodeHeader and is at most kAgentCodeSize long. It must stand at the
// start of its reservation, since it finds its memory by the distance (agent_memory.h).
[[nodiscard]] ByteView AgentCode();

// A room begins with the addresses of the agent's routines, through which its stubs call them: the
// agent need not be within their reach, and where functions have actions
// (tracedata/action_table.h) other routines are called, with no stub changed. The header of a room
// that is in use may be written while no thread runs.
enum class Entering : uint8_t { kPlain, kActing };
inline constexpr size_t kRoomHeaderSize = 128;
[[nodiscard]] std::array<uint8_t, kRoomHeaderSize> MakeRoomHeader(
    Avma agent, Entering entering = Entering::kPlain);

enum class StubKind : uint8_t {
  kCall,          // records a call
  kFramedCall,    // the same, for a site behind push rbp; mov rbp, rsp: return address at rbp + 8
  kInnerCall,     // the same, of a call that the stub makes: the return address stays where it is
  kBeforeUnwind,  // of functions that walk the stack: puts true return addresses back first
  kAfterCatch,    // of __cxa_begin_catch: what lies below was left; hijacks the rest again
  kLibraries,     // of what the dynamic linker calls when it has changed what is loaded
  kBeforeEnd,     // of functions that end the program: tells of open calls
  kBeforeExec,    // of functions that make it another: the same, and the tracer may follow
  // Of those that may set up what tracing could be fatal under (tracedata::Setter): where they are
  // about to, it is seen to that it is not.
  kBeforePrctl,
  kBeforeSyscall,
  kBeforeSigaction,
  kBeforeSigmask,
};

// The bytes before `body`, where the copy of the site's original begins.
//
//   stub   push function; call [enter]      the return address moves to the shadow stack …
//          lea rsp, [rsp+16]; call body     … and the function is called from here, so that the
//   back   lea rsp, [rsp-8]; call [leave]   processor's own return prediction stays right
//          ret
//   pass   lea rsp, [rsp+8]                 not recorded: the function is entered as if nothing
//   were body   copy of the original; jmp behind it
//
// kFramedCall, which is no longer at the function's entry: enter_framed writes `back` to rbp + 8.
//
//   stub   push function; call [enter_framed]; jmp pass
//   back   lea rsp, [rsp-8]; call [leave]; ret
//   pass   lea rsp, [rsp+8]
//   body
//
// kInnerCall, of functions whose caller is known by the word that it has pushed. None of their
// arguments may be on the stack, which is 16 bytes lower than they expect it.
//
//   stub   lea rsp, [rsp-8]; call inner
//   outer  lea rsp, [rsp+8]; ret
//   inner  as kCall, which returns to outer
//
// The others do not record: call [before_unwind], [after_catch], [libraries],
// [before_end] or [before_exec], then body; or, of the last four kinds:
//
//   stub   push setter; call [before_setting]; lea rsp, [rsp+8]
//   body
//
// A function that returns twice must have no stub of the first three kinds: setjmp, getcontext,
// vfork. (Where it has one all the same, its second return finds its way as long as the thread has
// made no deeper calls in between.)
[[nodiscard]] size_t StubHeadLength(StubKind kind);
// What a stub takes at most.
inline constexpr size_t kMaxStubLength = 192;

// The whole stub. `site` has stub, out_of_line (= stub + StubHeadLength), address, original and map
// set; `copy` is what stands out of line; `falls_through`: a jump to behind the site follows it.
// kOutOfReach: the room's header or the site is not within 2 GB.
[[nodiscard]] std::expected<std::vector<uint8_t>, patch::Refusal> MakeStub(StubKind kind, Avma room,
                                                                           const patch::Site& site,
                                                                           ByteView copy,
                                                                           bool falls_through);

// The stub of a site, as unwinders see it: what a thread that is in it is about to do, or has done.
[[nodiscard]] unwind::Detour DetourOf(const patch::Site& site);

// Where a patched function returns to, in its stub; what `place` of its OpenCall holds. 0 for kinds
// that record no call.
[[nodiscard]] Avma ReturnPoint(StubKind kind, Avma stub);

}  // namespace stackreel::agent
