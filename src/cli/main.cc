#include <csignal>

#include "cli/program.h"

int main(int argc, char** argv) {
  // A closed pipe is an error of write(2), which says what was lost.
  std::signal(SIGPIPE, SIG_IGN);
  stackreel::cli::Program program;
  return program.Run(argc, argv);
}
