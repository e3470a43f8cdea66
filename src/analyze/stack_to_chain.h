// What a sample with registers and a dumped stack is once it was unwound: one with a callchain.
#pragma once

#include <cstdint>
#include <vector>

#include "perfdata/attr.h"
#include "perfdata/sample.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {

// The attr that a sample has after it was unwound: a callchain, no registers of the user, no stack.
perfdata::Attr WithoutStack(const perfdata::Attr& attr);

// The callchain of `sample`: its kernel part as it is, then PERF_CONTEXT_USER and `frames`. Where
// the dump was cut off and the kernel's own user chain has the outermost of `frames`, what is
// outside of it there follows.
void BuildCallchain(const perfdata::Sample& sample, const std::vector<unwind::Frame>& frames,
                    unwind::StackEnd end, std::vector<uint64_t>& out);

}  // namespace stackreel::analyze
