#include "anonymize/verify_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace stackreel::anonymize {
namespace {

constexpr uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

std::string TextOf(const ComparedFrame& frame) {
  return fmt::format("{}+{:#x}{}{}", frame.module.empty() ? "nowhere" : frame.module, frame.offset,
                     frame.symbol.empty() ? "" : " ", frame.symbol);
}

}  // namespace

namespace {

// Up to the first run of hex digits that is long enough for an address; that run is dropped.
std::string_view TakeUpToAddress(std::string_view& text, bool& has_address) {
  constexpr size_t kLeastDigits = 8;
  size_t digits = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0) {
      ++digits;
      continue;
    }
    if (digits >= kLeastDigits) {
      const std::string_view before = text.substr(0, i - digits);
      text.remove_prefix(i);
      has_address = true;
      return before;
    }
    digits = 0;
  }
  has_address = false;
  return std::exchange(text, {});
}

// A text in which an address stood, in hex or as its very bytes, is not the same afterwards.
bool MayBeScrubbed(std::string_view in, std::string_view out) {
  const bool is_blotted =
      in.size() == out.size() && std::ranges::equal(in, out, [](char before, char after) {
        return before == after || after == '?';
      });
  if (is_blotted) return true;
  while (true) {
    bool in_has = false;
    bool out_has = false;
    if (TakeUpToAddress(in, in_has) != TakeUpToAddress(out, out_has) || in_has != out_has) {
      return false;
    }
    if (!in_has) return true;
  }
}

}  // namespace

bool NamePairs::AreSame(std::string_view in, std::string_view out) {
  if (!renamed_) {
    if (in == out) return true;
    if (!MayBeScrubbed(in, out)) return false;
  }
  const std::string& known_out = out_of_.try_emplace(std::string(in), out).first->second;
  const std::string& known_in = in_of_.try_emplace(std::string(out), in).first->second;
  return known_out == out && known_in == in;
}

void SampleDigests::Add(SampleFacts facts) {
  const bool is_time = facts.time != 0 && facts.time != UINT64_MAX;  // others are not shifted
  if (is_time && !has_first_time_) first_time_ = facts.time;
  has_first_time_ = has_first_time_ || is_time;
  if (shifted_ && is_time) facts.time -= first_time_;
  if (count_++ % kBlock == 0) blocks_.push_back(0);
  uint64_t& hash = blocks_.back();
  hash = Mix(Mix(Mix(hash, facts.event), facts.time), facts.period);
}

uint64_t SampleDigests::FirstDifference(const SampleDigests& other) const {
  const auto [mine, theirs] = std::ranges::mismatch(blocks_, other.blocks_);
  return static_cast<uint64_t>(mine - blocks_.begin());
}

std::optional<std::string> DifferenceOf(std::span<const ComparedFrame> before,
                                        std::span<const ComparedFrame> after, NamePairs& modules,
                                        NamePairs& symbols) {
  if (before.size() != after.size()) {
    return fmt::format("{} frames, {} in IN", after.size(), before.size());
  }
  for (size_t i = 0; i < before.size(); ++i) {
    const ComparedFrame &was = before[i], &is = after[i];
    if (was.offset == is.offset && modules.Same(was.module, is.module) &&
        symbols.Same(was.symbol, is.symbol)) {
      continue;
    }
    return fmt::format("frame {} is {}, in IN {}", i, TextOf(is), TextOf(was));
  }
  return std::nullopt;
}

Status CompareFrames(ComparedSamples& in, ComparedSamples& out, Level level,
                     const std::function<void(uint64_t sample, std::string what)>& differs) {
  NamePairs modules(level >= Level::kIdentity), symbols(level >= Level::kSymbols);
  ComparedSample before, after;
  for (uint64_t number = 0;; ++number) {
    TRY_ASSIGN(const bool in_has, in.Next(before));
    TRY_ASSIGN(const bool out_has, out.Next(after));
    if (in_has != out_has) {
      differs(number, in_has ? "OUT's analysis has no such sample" : "IN's has no such sample");
    }
    if (!in_has || !out_has) return {};
    auto difference = DifferenceOf(before.frames, after.frames, modules, symbols);
    if (difference) differs(number, std::move(*difference));
  }
}

}  // namespace stackreel::anonymize
