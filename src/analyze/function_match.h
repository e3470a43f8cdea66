// Which functions of a trace a pattern of replay, graph and report means.
#pragma once

#include <string_view>

#include "tracedata/trace_source.h"

namespace stackreel::analyze {

// `pattern` is NAME or NAME@MODULE, where '*' stands for any text. NAME is compared with the symbol
// without its version, of C++ demangled, without and with parameters; MODULE with the last part of
// the file's name, with and without its version: libc.so.6, libc.so, libc. The symbol as the trace
// has it matches too.
[[nodiscard]] bool MatchesFunction(const tracedata::TraceSource& source,
                                   const tracedata::TraceFunction& function,
                                   std::string_view pattern);

}  // namespace stackreel::analyze
