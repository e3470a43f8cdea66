// Any bytes as the files of a uftrace recording, one behind the other: what is read is copied
// to our format and to uftrace's, and that is read again.
//
//   u8 which file, u16 size, bytes; and so on
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "base/check.h"
#include "base/memory_io.h"
#include "tracedata/fake_trace.h"
#include "tracedata/fake_uftrace.h"
#include "tracedata/trace_copy.h"
#include "tracedata/uftrace_reader.h"
#include "tracedata/uftrace_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stackreel;
  namespace td = stackreel::tracedata;
  static const char* const kNames[] = {"info",  "task.txt", "sid-1.map", "a.sym",
                                       "a.dbg", "1.dat",    "2.dat",     "perf-cpu0.dat"};
  td::MemoryFolder folder;
  ByteReader reader(ByteView(data, size));
  while (!reader.AtEnd()) {
    const char* name = kNames[reader.U8() % std::size(kNames)];
    const uint16_t length = reader.U16();
    const ByteView bytes = reader.Bytes(std::min<size_t>(length, reader.remaining()));
    folder.files[name].assign(bytes.begin(), bytes.end());
  }
  const auto source = td::OpenUftraceData(folder.Reader());
  if (!source) return 0;
  for (size_t row = 0; row < (*source)->tables().threads.size(); ++row) {
    (void)td::ReadRun(**source, row);
  }
  td::FakeTrace copy;
  auto writer = td::TraceWriter::Begin(copy.calls, copy.facts, 1);
  CHECK(writer && td::CopyTrace(**source, *writer));
  CHECK(copy.Open());
  td::MemoryFolder written;
  td::MemoryFolderWriter files(written);
  CHECK(td::WriteUftraceData(**source, files));
  const auto again = td::OpenUftraceData(written.Reader());
  CHECK(again);
  for (size_t row = 0; row < (*again)->tables().threads.size(); ++row) {
    (void)td::ReadRun(**again, row);
  }
  CHECK((*again)->damage().empty());
  return 0;
}
