// Any bytes as what is said over a control socket: what is read is written as it was read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "tracedata/control_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace tracedata = stackreel::tracedata;
  const stackreel::ByteView bytes(data, size);
  if (const auto request = tracedata::DecodeRequest(bytes)) {
    const std::vector<uint8_t> again = tracedata::Encode(*request);
    CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  }
  if (const auto answer = tracedata::DecodeAnswer(bytes)) {
    const std::vector<uint8_t> again = tracedata::Encode(*answer);
    CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  }
  return 0;
}
