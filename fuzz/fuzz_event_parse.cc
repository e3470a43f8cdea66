// Event texts: any text is an event or a clear error; no file outside the folders is asked for.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "record/event_parse.h"

using stackreel::record::EventFolders;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static const EventFolders kFolders;
  const auto names = stackreel::record::SplitEventList(text);
  if (!names) return 0;
  for (const std::string& name : *names) {
    const auto event = stackreel::record::ParseEventIn(kFolders, name);
    if (!event && event.error().message.empty()) abort();
  }
  return 0;
}
