// The agent's code as data of this program; inside/ builds it.
#include "agent/stub.h"

#ifdef STACKREEL_AGENT_FILE
__asm__(
    ".pushsection .rodata\n"
    ".balign 64\n"
    "stackreel_agent_begin:\n"
    ".incbin \"" STACKREEL_AGENT_FILE
    "\"\n"
    "stackreel_agent_end:\n"
    ".globl stackreel_agent_begin, stackreel_agent_end\n"
    ".hidden stackreel_agent_begin, stackreel_agent_end\n"
    ".popsection\n");
extern "C" __attribute__((visibility("hidden"))) const uint8_t stackreel_agent_begin[];
extern "C" __attribute__((visibility("hidden"))) const uint8_t stackreel_agent_end[];
#endif

namespace stackreel::agent {

ByteView AgentCode() {
#ifdef STACKREEL_AGENT_FILE
  return {stackreel_agent_begin, stackreel_agent_end};
#else
  return {};
#endif
}

}  // namespace stackreel::agent
