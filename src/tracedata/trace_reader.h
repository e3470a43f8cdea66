// Reads a trace that trace_writer.h wrote.
#pragma once

#include <memory>

#include "base/error.h"
#include "base/io.h"
#include "tracedata/trace_source.h"

namespace stackreel::tracedata {

// Reads the facts, and where chunks stand; the chunks themselves when their turn comes: of memory
// it takes 32 bytes a chunk, and what facts and one chunk of each thread being read take. Both
// files must be such that can be sought in.
//
// Damage ends nothing: what lies behind it is found and read. The source says what is missing: in
// damage(), and by the counters tracedata.damaged_bytes, tracedata.damaged_chunk,
// tracedata.dropped_chunks (numbers of chunks that are missing), tracedata.bad_event,
// tracedata.bad_nesting, tracedata.out_of_order, tracedata.bad_fact, tracedata.unknown_fact,
// tracedata.unknown_function and tracedata.unknown_thread (without a fact that tells of them).
//
// kDamaged, kUnsupported: a file is none of a trace, or of a later version.
Result<std::unique_ptr<TraceSource>> OpenTrace(std::unique_ptr<FileSource> calls,
                                               std::unique_ptr<FileSource> facts);

}  // namespace stackreel::tracedata
