#include "symbolize/function_name.h"

#include "symbolize/symbol_table.h"

namespace stackreel::symbolize {
namespace {

bool StripSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// Where the bracket that text's last character closes was opened; npos if it is not balanced.
size_t OpeningOfLast(std::string_view text) {
  const char close = text.back();
  const char open = close == ')' ? '(' : close == ']' ? '[' : '{';
  size_t depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == close) ++depth;
    if (text[i] == open && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Whether the '<' or '>' at `at` belongs to an operator's name: "operator<", "operator->", ….
bool IsOperatorSign(std::string_view text, size_t at) {
  size_t first = at;
  while (first > 0 && std::string_view("<>=-").find(text[first - 1]) != std::string_view::npos) {
    --first;
  }
  if (!text.substr(0, first).ends_with("operator")) return false;
  // Up to `at` it must be an operator, or the beginning of one: "operator==<char>" has arguments.
  const std::string_view sign = text.substr(first, at + 1 - first);
  return sign == "<" || sign == "<<" || sign == ">" || sign == ">>" || sign == "->" ||
         sign == "<=>";
}

// Where the return type before a template function's name ends, 0 if there is none: after the last
// space that is not inside brackets and not part of "operator new", "operator int" or "operator<
// <".
size_t EndOfReturnType(std::string_view name) {
  size_t depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    const char c = name[i];
    if (c == ')' || c == ']' || c == '}' || (c == '>' && !IsOperatorSign(name, i))) ++depth;
    if (c == '(' || c == '[' || c == '{' || (c == '<' && !IsOperatorSign(name, i))) {
      if (depth == 0) return 0;
      --depth;
    }
    if (c != ' ' || depth != 0) continue;
    const std::string_view before = name.substr(0, i);
    if (before.ends_with("operator")) continue;
    if (before.ends_with('<') && IsOperatorSign(name, i - 1)) continue;
    return i + 1;
  }
  return 0;
}

}  // namespace

std::string_view WithoutParameters(std::string_view demangled) {
  std::string_view text = demangled;
  while (text.ends_with(']')) {
    const size_t open = OpeningOfLast(text);
    if (open == std::string_view::npos || !text.substr(open).starts_with("[clone ")) break;
    text = text.substr(0, open);
    StripSuffix(text, " ");
  }
  while (StripSuffix(text, " const") || StripSuffix(text, " volatile") ||
         StripSuffix(text, " &&") || StripSuffix(text, " &") || StripSuffix(text, " noexcept")) {
  }
  if (!text.ends_with(')')) return demangled;
  const size_t open = OpeningOfLast(text);
  if (open == std::string_view::npos || open == 0) return demangled;
  // "operator()" alone is a name.
  if (open + 2 == text.size() && text.substr(0, open).ends_with("operator")) return demangled;
  // "(anonymous namespace)"
  if (text[open - 1] == ':' || text[open - 1] == ' ') return demangled;
  text = text.substr(0, open);
  // A function that returns a pointer to a function: "void (*f<int>(int))(char)".
  if (text.ends_with(')') && !text.ends_with("operator()")) {
    const size_t inner = OpeningOfLast(text);
    const std::string_view declarator = inner == std::string_view::npos
                                            ? std::string_view()
                                            : text.substr(inner + 1, text.size() - inner - 2);
    if (declarator.starts_with('*') || declarator.starts_with('&')) {
      const std::string_view name = WithoutParameters(declarator.substr(1));
      return name.size() < declarator.size() - 1 ? name : demangled;
    }
  }
  return text.ends_with('>') ? text.substr(EndOfReturnType(text)) : text;
}

std::string FunctionName(std::string_view mangled) {
  constexpr std::string_view kPlt = "@plt";
  if (mangled.ends_with(kPlt)) {
    return FunctionName(mangled.substr(0, mangled.size() - kPlt.size())) + std::string(kPlt);
  }
  std::string text = Demangle(mangled);
  const bool is_cxx_function =
      mangled.starts_with("_Z") && !mangled.starts_with("_ZT") && !mangled.starts_with("_ZGV");
  if (!is_cxx_function || text == mangled) return text;
  return std::string(WithoutParameters(text));
}

}  // namespace stackreel::symbolize
