// libiberty does the work: it is what perf uses, so names are equal to the byte.
#include <demangle.h>

#include <csetjmp>
#include <cstring>
#include <optional>
#include <string>

#include "symbolize/symbol_table.h"

namespace stackreel::symbolize {

namespace {

// What a demangler writes to. A short name can stand for an exponentially long one (substitutions
// of substitutions), so that the writing is cut off, by a jump out of the demangler: its callback
// form holds nothing but stack.
struct NameSink {
  std::string text;
  std::jmp_buf too_long;
};

void Append(const char* text, size_t size, void* opaque) {
  auto* sink = static_cast<NameSink*>(opaque);
  if (size > kLongestDemangledName - sink->text.size()) std::longjmp(sink->too_long, 1);
  sink->text.append(text, size);
}

// Calls one of libiberty's demanglers. Nothing if the name is not of its kind.
template <typename Function>
bool RunDemangler(Function demangle, const char* name, int options, NameSink& sink) {
  sink.text.clear();
  if (setjmp(sink.too_long) != 0) return false;
  return demangle(name, options, Append, &sink) != 0;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// OCaml: "camlStdlib__List__map_123": modules joined by "__", "$3d" for a character by its code
// (lower-case hex), and a number for uniqueness, which stays.
std::optional<std::string> DemangleOcaml(std::string_view name) {
  constexpr std::string_view kPrefix = "caml";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (name.empty() || name[0] < 'A' || name[0] > 'Z') return std::nullopt;
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("__")) {
      out += '.';
      ++i;
    } else if (name[i] == '$' && i + 2 < name.size() && HexDigit(name[i + 1]) >= 0 &&
               HexDigit(name[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(name[i + 1]) * 16 + HexDigit(name[i + 2]));
      i += 2;
    } else {
      out += name[i];
    }
  }
  return out;
}

}  // namespace

std::string Demangle(std::string_view name, NameStyle style) {
  // Longer ones are not worth the demangler's stack, which grows with them.
  constexpr size_t kLongestMangledName = 32768;
  constexpr std::string_view kPlt = "@plt";
  std::string mangled(name);
  if (name.size() > kLongestMangledName) return mangled;
  if (name.ends_with(kPlt)) {
    name.remove_suffix(kPlt.size());
    return Demangle(name, style).append(kPlt);
  }
  if (name.starts_with("_Z") || name.starts_with("_R")) {
    const int options = style == NameStyle::kName ? DMGL_NO_OPTS : DMGL_PARAMS | DMGL_ANSI;
    NameSink sink;
    if (RunDemangler(rust_demangle_callback, mangled.c_str(), options, sink)) return sink.text;
    if (RunDemangler(cplus_demangle_v3_callback, mangled.c_str(), options, sink)) return sink.text;
  }
  if (auto ocaml = DemangleOcaml(name)) return *std::move(ocaml);
  return mangled;
}

}  // namespace stackreel::symbolize
