#include "cli/call_graph_choice.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace stackreel::cli {
namespace {

std::optional<double> PercentOf(std::string_view word) {
  double value = 0;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, value);
  const bool good = parsed.ec == std::errc() && parsed.ptr == end && value >= 0 && value <= 100;
  return good ? std::optional(value) : std::nullopt;
}

Status TakeWord(std::string_view word, CallGraphChoice& choice) {
  // What we always do.
  if (word == "graph" || word == "function" || word == "percent") return {};
  if (word == "caller") {
    choice.order = views::CallGraph::kCaller;
  } else if (word == "callee") {
    choice.order = views::CallGraph::kCallee;
  } else if (word == "none" || word == "no") {
    choice.order = views::CallGraph::kNone;
  } else if (const auto percent = PercentOf(word)) {
    choice.limit = percent;
  } else if (word == "folded" || word == "flat") {
    return Fail(Error(ErrorKind::kUsage, fmt::format("-g {}: report draws trees", word))
                    .WithCure("stackreel flamegraph --format=folded   has one line a stack"));
  } else if (word == "fractal") {
    return Fail(Error(ErrorKind::kUsage, "-g fractal: percentages here are of all samples")
                    .WithCure("-g graph"));
  } else {
    return Fail(Error(ErrorKind::kUsage, fmt::format("-g: '{}' says nothing of a call graph", word))
                    .WithCure("-g with caller, callee or none, and a least percentage: "
                              "-g caller,0.5"));
  }
  return {};
}

}  // namespace

Result<CallGraphChoice> ParseCallGraphChoice(const std::string& text) {
  CallGraphChoice choice;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    TRY(TakeWord(rest.substr(0, comma), choice));
    if (comma == std::string_view::npos) return choice;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace stackreel::cli
