// Which arguments and return values are to be recorded, as users of uftrace write it: -A and -R.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tracedata/trace_facts.h"
#include "tracedata/value_reads.h"
#include "tracer/function_pattern.h"

namespace stackreel::tracer {

// One "arg1/i32", "fparg2/64%xmm3", "arg7/s%stack+1" or "retval/f64".
struct ValueSpec {
  bool is_result = false;
  tracedata::ValueFormat format;
  tracedata::ValueRead read;  // whose limit is not set
};

// FUNCTION[@MODULE][@SPEC,SPEC...]
//
//   SPEC      argN[/FORMAT[BITS]][%PLACE]   the Nth that is an integer or a pointer, from 1
//             fpargN[/BITS][%PLACE]         the Nth that is a floating-point number
//             retval[/FORMAT[BITS]]
//   FORMAT    d i u x c s S p, and f of retval
//   BITS      8 16 32 64; 80 of long double
//   PLACE     rdi rsi rdx rcx r8 r9, xmm0 ... xmm7, stack+N: the Nth word above the return address
struct ValueChoice {
  FunctionPattern pattern;
  // Without specs: what debug information tells, of arguments or of the return value.
  bool by_prototype = false;
  bool results = false;  // by_prototype: -R, else -A
  std::vector<ValueSpec> specs;
};

// What stands behind FUNCTION[@MODULE]@. kUsage: says what is wrong, where, and what can stand
// there.
Result<std::vector<ValueSpec>> ParseValueSpecs(std::string_view text);
// All of it; `results`: of -R.
Result<ValueChoice> ParseValueChoice(std::string_view text, bool results);

}  // namespace stackreel::tracer
