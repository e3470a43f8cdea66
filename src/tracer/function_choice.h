// Which functions of a target's modules patterns name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tracer/function_pattern.h"
#include "tracer/target_modules.h"

namespace stackreel::tracer {

enum class Choice : uint8_t { kNotNamed, kPatch, kUnpatch };

// The patterns in the order in which they were given: the last that matches decides. Patterns to
// unpatch alone patch nothing.
struct PatternChoice {
  FunctionPattern pattern;
  Choice choice = Choice::kPatch;
};

// What a function is called in a trace. Of several names, if there is a `pattern` those that it
// matches, the one that is meant for others: malloc, not __libc_malloc. Of a function that no
// symbol names (its module is stripped) the place in its file.
std::string TraceName(const ModuleFunction& function, const FunctionPattern* pattern = nullptr);

bool MatchesModule(const FunctionPattern& pattern, const TargetModule& module);
// By its name, or another.
bool MatchesFunction(const FunctionPattern& pattern, const ModuleFunction& function);

// The places of those that are for this module, the last first.
std::vector<size_t> PatternsFor(std::span<const PatternChoice> patterns,
                                const TargetModule& module);
// What the patterns say of a function, by any of its names; `concerned` are those for its module.
// Of those that match something `matched`, which has as many places as `patterns`, becomes true;
// even where another overrules them.
Choice ChoiceOf(std::span<const PatternChoice> patterns, std::span<const size_t> concerned,
                const ModuleFunction& function, std::vector<bool>& matched);

// Says of a pattern that nothing matches why, with names that are near. The code of the modules
// that it is for has been read.
Error NothingMatches(const FunctionPattern& pattern, std::span<const TargetModule> modules);

}  // namespace stackreel::tracer
