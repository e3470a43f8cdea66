// What numbers an option takes.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace stackreel::cli {

// A check for CLI::Option::check: the value is a whole number from `least` to `most`. A refusal
// reads
// "'-3' is not a number from 0 to 1,024".
CLI::Validator WholeNumber(int64_t least, int64_t most);
// The same for numbers with a fraction.
CLI::Validator Number(double least, double most);

}  // namespace stackreel::cli
