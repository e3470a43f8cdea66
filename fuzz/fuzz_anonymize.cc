// Any bytes as a recording: anonymised into a file and into a pipe, and verified. What could be
// anonymised must be clean.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

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

void AnonymizeInto(const anonymize::Options& options, const anonymize::RereadableRecording& in,
                   const anonymize::Key& key) {
  MemorySink sink(options.container == perfdata::Container::kFile);
  if (!anonymize::Anonymize(in, sink, key, options)) return;
  MemorySource source(sink.bytes());
  anonymize::VerifyOptions verify;
  verify.level = options.level;
  verify.must_be_marked = true;
  verify.keeps_raw = options.keep_raw != anonymize::KeepRaw::kNothing;
  verify.salvaged = options.salvage;
  const auto verdict = anonymize::Verify(in, anonymize::RereadableRecording(source), verify);
  if (!verdict) std::fprintf(stderr, "%s\n", verdict.error().ToString().c_str());
  CHECK(verdict);
  if (!verdict->clean()) PrintFindings(*verdict);
  CHECK(verdict->clean());
}

}  // namespace
}  // namespace stackreel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace anonymize = stackreel::anonymize;
  using stackreel::perfdata::Container;
  stackreel::MemorySource source(stackreel::ByteView(data, size));
  const anonymize::RereadableRecording in(source);
  // Of each input another: a fuzzer that has seen a pseudonym would put it into recordings, where
  // nobody can who does not know the key.
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto key = *anonymize::Key::FromSecret(stackreel::AsBytes("a secret of a fuzzer" + text));
  for (const anonymize::Level level : {anonymize::Level::kAddresses, anonymize::Level::kSymbols}) {
    for (const Container container : {Container::kFile, Container::kPipe}) {
      anonymize::Options options;
      options.level = level;
      options.container = container;
      options.salvage = container == Container::kPipe;
      stackreel::AnonymizeInto(options, in, key);
    }
  }
  return 0;
}
