#include "tracer/function_pattern.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <regex.h>

#include <array>
#include <optional>
#include <utility>

#include "symbolize/symbol_table.h"
#include "symbolize/symbol_version.h"

namespace stackreel::tracer {
namespace {

bool IsRegularExpression(std::string_view text) {
  return text == "." || text.find_first_of("^$|+") != std::string_view::npos ||
         text.find(".*") != std::string_view::npos;
}

bool IsGlobMatch(const std::string& glob, std::string_view name) {
  return fnmatch(glob.c_str(), std::string(name).c_str(), 0) == 0;
}

std::string_view LastPart(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// A compiled POSIX extended regular expression.
class Regex {
 public:
  static Result<std::unique_ptr<Regex>> Compile(const std::string& text) {
    auto regex = std::make_unique<Regex>();
    const int error = regcomp(&regex->compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB);
    if (error == 0) {
      regex->is_compiled_ = true;
      return regex;
    }
    std::array<char, 128> reason = {};
    regerror(error, &regex->compiled_, reason.data(), reason.size());
    return Fail(Error(ErrorKind::kUsage,
                      fmt::format("pattern '{}' is no regular expression: {}", text, reason.data()))
                    .WithCure("put it between ^ and $ with \\ before each sign that is meant as it "
                              "stands, or use a glob: * ? [a-z]"));
  }
  Regex() = default;
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;
  ~Regex() {
    if (is_compiled_) regfree(&compiled_);
  }
  [[nodiscard]] bool Matches(std::string_view name) const {
    return regexec(&compiled_, std::string(name).c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_ = {};
  bool is_compiled_ = false;
};

}  // namespace

struct FunctionPattern::State {
  std::string text;
  std::string name;                   // what stands before the @
  std::optional<std::string> module;  // and behind it
  std::unique_ptr<Regex> regex;       // else `name` is a glob

  [[nodiscard]] bool MatchesText(std::string_view symbol) const {
    if (symbol == name) return true;
    return regex ? regex->Matches(symbol) : IsGlobMatch(name, symbol);
  }
};

FunctionPattern::FunctionPattern(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Result<FunctionPattern> FunctionPattern::Parse(std::string_view text) {
  auto state = std::make_shared<State>();
  state->text = text;
  const size_t at = text.rfind('@');
  state->name = text.substr(0, at);
  if (at != std::string_view::npos) state->module = text.substr(at + 1);
  if (state->name.empty()) {
    return Fail(Error(ErrorKind::kUsage, fmt::format("pattern '{}' names no function", text))
                    .WithCure("'*@MODULE' is every function of a module"));
  }
  if (state->module && state->module->empty()) {
    return Fail(
        Error(ErrorKind::kUsage, fmt::format("pattern '{}' names no module", text))
            .WithCure("leave out the @ for the program itself, or write @* for all modules"));
  }
  if (IsRegularExpression(state->name)) {
    TRY_ASSIGN(state->regex, Regex::Compile(state->name));
  }
  return FunctionPattern(std::move(state));
}

const std::string& FunctionPattern::text() const { return state_->text; }

bool FunctionPattern::names_module() const { return state_->module.has_value(); }

bool FunctionPattern::MatchesModule(std::string_view path, bool is_program) const {
  if (!state_->module) return is_program;
  const std::string& glob = *state_->module;
  if (glob.find('/') != std::string::npos) return IsGlobMatch(glob, path);
  const std::string_view file = LastPart(path);
  if (IsGlobMatch(glob, file)) return true;
  // libc.so.6: libc.so, libc
  const size_t suffix = file.find(".so");
  if (suffix == std::string_view::npos) return false;
  return IsGlobMatch(glob, file.substr(0, suffix + 3)) || IsGlobMatch(glob, file.substr(0, suffix));
}

bool FunctionPattern::MatchesName(std::string_view symbol) const {
  if (symbol == state_->name) return true;  // version and all
  const std::string_view name = symbolize::WithoutVersion(symbol);
  const std::string plain = symbolize::Demangle(name, symbolize::NameStyle::kName);
  // Else '_*' would match all of C++, and 'Z' too.
  const bool asks_mangled = state_->name.starts_with("_Z") || state_->name.starts_with("^_Z");
  if ((plain == name || asks_mangled) && state_->MatchesText(name)) return true;
  if (plain != name && state_->MatchesText(plain)) return true;
  const std::string full = symbolize::Demangle(name, symbolize::NameStyle::kSignature);
  return full != plain && full != name && state_->MatchesText(full);
}

}  // namespace stackreel::tracer
