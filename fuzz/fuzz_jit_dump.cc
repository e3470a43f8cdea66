// Any bytes as a jitdump: what it names lies inside it, and is found again.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "session/jit_dump.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using stackreel::Avma;
  using stackreel::Svma;
  namespace session = stackreel::session;
  const auto dump = session::JitDump::Parse({data, size});
  if (!dump) return 0;
  for (const session::JitCode& code : dump->codes()) {
    CHECK(code.offset + code.size <= size);
    const session::JitCode* found = dump->Find(Avma(code.start), code.time);
    CHECK((found != nullptr && found->time <= code.time) || code.size == 0);
    if (found != nullptr) CHECK(found->SvmaOf(Avma(code.start)).value < size);
    CHECK(code.size == 0 || dump->FindBySvma(Svma(code.offset)) != nullptr);
    uint64_t last = 0;
    for (const session::JitLine& line : dump->LinesOf(code)) {
      CHECK(line.offset >= last);
      last = line.offset;
    }
  }
  return 0;
}
