// Event texts: any text is an event or a clear error; no file outside the folders is asked for.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "record/event_list.h"

using stackreel::record::EventFolders;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static const EventFolders kFolders;
  const auto list = stackreel::record::ParseEventList(kFolders, {text});
  if (!list && list.error().message.empty()) abort();
  return 0;
}
