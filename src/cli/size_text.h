// Sizes and rates on the command line.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace stackreel::cli {

// "64", "100M": a number, with a unit of 1024s. kUsage names `option`.
Result<uint64_t> ParseSize(const std::string& text, const char* option);

// The same of how many of an event are one sample: as many as 63 bits hold.
Result<uint64_t> ParsePeriod(const std::string& text, const char* option);

// Samples a second: a number, or "max", as many as the kernel allows. kUsage: none, or 0.
Result<uint64_t> ParseFrequency(const std::string& text, const char* option);

// "512 bytes", "1.5 MB".
std::string FormatSize(uint64_t bytes);

}  // namespace stackreel::cli
