#include <new>

#include "base/page_advice.h"
#include "cli/program.h"
#include "os/file.h"
#include "os/memory.h"

// SIGPIPE keeps what the caller gave it: as in any filter, `stackreel script | head` ends when head
// does. `record` ignores it while it records, since there a closed pipe has to be told.
int main(int argc, char** argv) {
  stackreel::os::HoldStandardDescriptors();
  stackreel::os::TakeSizeLimitAsError();
  std::set_new_handler(stackreel::cli::EndOutOfMemory);
  stackreel::os::PrepareHeap();
  stackreel::page_advice = stackreel::os::KernelPageAdvice();
  stackreel::cli::Program program;
  return program.Run(argc, argv);
}
