// Test code: every way in which the threads of a simulated program and an executor that patches it,
// unpatches it, patches it again … can interleave.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "patch/plan.h"
#include "patch/simulated_machine.h"

namespace stackreel::patch {

struct ExplorationOptions {
  SwitchMode mode = SwitchMode::kTrap;
  bool kills = false;        // the tracer may die between any two steps; another one then unpatches
  bool failures = false;     // any one step may fail: that one only, or it and all that follow
  bool frees = false;        // after unpatching, out-of-line code is freed when nobody can meet it
  bool frees_early = false;  // … or whenever
  bool forgets_entries = false;  // the trap table is emptied when the first sync has been done
  size_t cores_synced = kSimMaxThreads;  // a sync that does not reach all
  // What is done to each plan before it is executed.
  std::function<void(Plan&)> change = {};
  size_t max_states = 20'000'000;
};

struct Exploration {
  std::string violation;  // empty: there is none
  std::string path;       // to the violation, one step a line
  size_t states = 0;
  SimEvents events;
  // What batches came to, so that a test can see that it looked at something.
  size_t patched = 0;
  size_t unpatched = 0;
  size_t deferred = 0;
  size_t aside_left = 0;
  size_t stuck = 0;
  size_t failed = 0;
  size_t killed = 0;
  size_t freed = 0;
};

[[nodiscard]] Exploration Explore(const SimProgram& program, const ExplorationOptions& options);

}  // namespace stackreel::patch
