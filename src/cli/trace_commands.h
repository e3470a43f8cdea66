// The commands that show traces.
#pragma once

#include <memory>

#include "cli/command.h"

namespace stackreel::cli {

std::unique_ptr<Command> MakeReplayCommand();
std::unique_ptr<Command> MakeGraphCommand();
std::unique_ptr<Command> MakeInfoCommand();
std::unique_ptr<Command> MakeConvertCommand();

}  // namespace stackreel::cli
