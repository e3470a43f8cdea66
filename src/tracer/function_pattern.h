// Which functions are meant: -P, -U and the patterns of `patch` and `unpatch`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace stackreel::tracer {

// PATTERN[@MODULE]. PATTERN is a glob (* ? [a-z]), or a regular expression (POSIX extended, matches
// anywhere) if it has one of the signs ^ $ | + .* or is a lone "."; it is compared with the
// symbol's name without its version, of C++ with the demangled name, with and without parameters;
// with the mangled name only if it begins with _Z itself (or ^_Z). MODULE is a glob that is
// compared with the file name's last part, with and without its version (libc.so.6: libc, libc.so).
// Without it the pattern is for the program itself.
class FunctionPattern {
 public:
  // kUsage: a regular expression with a fault, which is named, or one so large that regcomp(3)
  // could run out of stack or memory.
  static Result<FunctionPattern> Parse(std::string_view text);

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool names_module() const;
  [[nodiscard]] bool MatchesModule(std::string_view path, bool is_program) const;
  [[nodiscard]] bool MatchesName(std::string_view name) const;

 private:
  struct State;
  explicit FunctionPattern(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace stackreel::tracer
