// Any bytes as a recording: anonymised into a file and into a pipe, and verified. What could be
// anonymised must be clean, but for what a made-up recording may have: a value in a field that is
// no address, an event's id say, that is the same as some address, and is kept.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "anonymize/anonymize.h"
#include "anonymize/verify.h"
#include "base/check.h"
#include "base/memory_io.h"

namespace stackreel {
namespace {

void PrintFindings(const anonymize::Verdict& verdict) {
  for (const anonymize::Finding& finding : verdict.findings) {
    std::fprintf(stderr, "(%c) %s %s at %#llx+%#llx: %s\n", static_cast<char>(finding.kind),
                 finding.record.c_str(), finding.field.c_str(),
                 static_cast<unsigned long long>(finding.file_offset),
                 static_cast<unsigned long long>(finding.offset), finding.value.c_str());
  }
}

bool IsByChance(const anonymize::Finding& finding) {
  if (finding.kind != anonymize::FindingKind::kOriginalValue) return false;
  for (const char* field : {"addr", "ip", "ips", "callchain", "branches", "pgoff"}) {
    if (finding.field == field) return false;
  }
  return true;
}

void AnonymizeInto(perfdata::Container container, const anonymize::RereadableRecording& in,
                   const anonymize::Key& key) {
  anonymize::Options options;
  options.container = container;
  MemorySink sink(container == perfdata::Container::kFile);
  if (!anonymize::Anonymize(in, sink, key, options)) return;
  MemorySource source(sink.bytes());
  const auto verdict = anonymize::Verify(in, anonymize::RereadableRecording(source), {});
  CHECK(verdict);
  if (std::ranges::all_of(verdict->findings, IsByChance)) return;
  PrintFindings(*verdict);
  CHECK(verdict->clean());
}

}  // namespace
}  // namespace stackreel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using stackreel::perfdata::Container;
  stackreel::MemorySource source(stackreel::ByteView(data, size));
  const stackreel::anonymize::RereadableRecording in(source);
  static const auto kKey =
      *stackreel::anonymize::Key::FromSecret(stackreel::AsBytes("a secret of a fuzzer"));
  stackreel::AnonymizeInto(Container::kFile, in, kKey);
  stackreel::AnonymizeInto(Container::kPipe, in, kKey);
  return 0;
}
