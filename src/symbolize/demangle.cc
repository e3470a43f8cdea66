#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "symbolize/symbol_table.h"

namespace stackreel::symbolize {

namespace {

// The demangler's stack grows with the name, so that longer names stay as they are.
constexpr size_t kLongestName = 32768;

std::string DemangleItanium(std::string_view name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
  return text == nullptr ? std::string(name) : std::string(text.get());
}

}  // namespace

std::string Demangle(std::string_view name) {
  if (name.size() > kLongestName || !name.starts_with("_Z")) return std::string(name);
  return DemangleItanium(name);
}

}  // namespace stackreel::symbolize
