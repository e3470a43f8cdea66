// Which functions are meant: -P, -U and the patterns of `patch` and `unpatch`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  // kUsage: a regular expression with a fault, which is named.
  static Result<FunctionPattern> Parse(std::string_view text);
  FunctionPattern(FunctionPattern&&) noexcept;
  FunctionPattern& operator=(FunctionPattern&&) noexcept;
  ~FunctionPattern();

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] bool names_module() const;
  [[nodiscard]] bool MatchesModule(std::string_view path, bool is_program) const;
  [[nodiscard]] bool MatchesName(std::string_view name) const;

 private:
  struct State;
  explicit FunctionPattern(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

enum class Choice : uint8_t { kNotNamed, kPatch, kUnpatch };

// The patterns in the order in which they were given: the last that matches decides. Patterns to
// unpatch alone patch nothing.
struct PatternChoice {
  FunctionPattern pattern;
  Choice choice = Choice::kPatch;
};
[[nodiscard]] Choice Choose(std::span<const PatternChoice> patterns, std::string_view module_path,
                            bool is_program, std::string_view name);

}  // namespace stackreel::tracer
