#include "tracer/function_pattern.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

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

// regcomp() descends into each parenthesis and writes each repetition out: it would run out of
// stack or memory if it were given any expression.
constexpr size_t kLongestRegex = 2000;
constexpr uint64_t kLargestRegex = 10'000;  // with its repetitions written out

// 3 of "2,3}…": the larger of the numbers of a repetition, of which either can be left out.
uint64_t LargestCount(std::string_view text) {
  const char* const end = text.data() + text.size();
  uint64_t largest = 0;
  for (const char* at = text.data();; ++at) {
    uint64_t count = 0;
    const auto [behind, code] = std::from_chars(at, end, count);
    if (code == std::errc::result_out_of_range) return kLargestRegex;
    largest = std::max(largest, std::min(count, kLargestRegex));
    at = behind;
    if (at == end || *at != ',') return largest;
  }
}

// What stands behind "[abc]" in `text`, which begins with its bracket. Inside are no escapes.
std::string_view BehindBrackets(std::string_view text) {
  size_t i = text.starts_with("[^") ? 2 : 1;
  for (const size_t first = i; i < text.size() && (text[i] != ']' || i == first); ++i) {
    const char kind = i + 1 < text.size() && text[i] == '[' ? text[i + 1] : '\0';
    if (kind != ':' && kind != '.' && kind != '=') continue;
    const size_t close = text.find(std::string{kind, ']'}, i + 2);  // of [:alpha:]
    if (close == std::string_view::npos) return {};
    i = close + 1;
  }
  return text.substr(std::min(i + 1, text.size()));
}

// How many signs a regular expression has with its repetitions written out, or somewhat more.
// Brackets are one.
uint64_t SizeWrittenOut(std::string_view text) {
  std::vector<uint64_t> outer;  // for each open parenthesis what stands before it
  uint64_t size = 0;            // since the innermost open parenthesis
  uint64_t last = 0;            // of that, what a repetition would repeat
  while (!text.empty() && size <= kLargestRegex) {
    const char sign = text.front();
    const size_t length = sign == '['    ? text.size() - BehindBrackets(text).size()
                          : sign == '\\' ? std::min<size_t>(2, text.size())
                                         : 1;
    text.remove_prefix(length);
    if (sign == '(') {
      outer.push_back(size);
      size = last = 0;
    } else if (sign == ')' && !outer.empty()) {
      last = size + 1;
      size = outer.back() + last;
      outer.pop_back();
    } else if (sign == '+' || sign == '{') {
      const uint64_t more = last * (sign == '+' ? 1 : LargestCount(text)) + 1;
      size += more;
      last += more;
    } else {
      if (sign != '*' && sign != '?') last = 1;
      ++size;
    }
  }
  return std::accumulate(outer.begin(), outer.end(), size);
}

// A compiled POSIX extended regular expression.
class Regex {
 public:
  static Result<std::unique_ptr<Regex>> Compile(const std::string& text) {
    if (text.size() > kLongestRegex || SizeWrittenOut(text) > kLargestRegex) {
      return Fail(Error(ErrorKind::kUsage,
                        fmt::format("pattern '{}' is too large a regular expression", text))
                      .WithCure(fmt::format("it may have {} signs, and {} with its repetitions "
                                            "written out; several patterns can be given",
                                            kLongestRegex, kLargestRegex)));
    }
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
  bool is_literal = false;            // one of nothing but itself

  [[nodiscard]] bool MatchesText(std::string_view symbol) const {
    if (symbol == name) return true;
    if (is_literal) return false;
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
  state->is_literal = !state->regex && state->name.find_first_of("*?[\\") == std::string::npos;
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
  if (plain == name) return state_->MatchesText(name);  // it is not mangled
  // Else '_*' would match all of C++, and 'Z' too.
  const bool asks_mangled = state_->name.starts_with("_Z") || state_->name.starts_with("^_Z");
  if (asks_mangled && state_->MatchesText(name)) return true;
  if (state_->MatchesText(plain)) return true;
  const std::string full = symbolize::Demangle(name, symbolize::NameStyle::kSignature);
  return full != plain && full != name && state_->MatchesText(full);
}

}  // namespace stackreel::tracer
