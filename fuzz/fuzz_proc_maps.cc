// /proc/PID/maps: what is parsed makes sense, whatever the text. And lists of CPUs.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "os/proc.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& mapping : stackreel::os::ParseProcMaps(text)) {
    if (mapping.start >= mapping.end) abort();
    if (mapping.path.size() > size) abort();
  }
  if (const auto cpus = stackreel::os::ParseCpuList(text)) {
    for (size_t i = 1; i < cpus->size(); ++i) {
      if ((*cpus)[i - 1] >= (*cpus)[i]) abort();
    }
  }
  return 0;
}
