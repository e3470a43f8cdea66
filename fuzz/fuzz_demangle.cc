// Demangling: no name may take long, become huge, or crash.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "symbolize/symbol_table.h"

using stackreel::symbolize::Demangle;
using stackreel::symbolize::kLongestDemangledName;
using stackreel::symbolize::NameStyle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  for (const NameStyle style : {NameStyle::kName, NameStyle::kSignature}) {
    CHECK(Demangle(name, style).size() <= std::max(size, kLongestDemangledName + 8));
  }
  return 0;
}
