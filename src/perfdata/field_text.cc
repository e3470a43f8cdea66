#include "perfdata/field_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stackreel::perfdata {

namespace {

// "type=call"; of the flag word of a branch what is set.
std::string BranchFlagText(uint64_t flags) {
  std::string out;
  const auto add = [&out](std::string_view text) {
    if (!out.empty()) out += ' ';
    out += text;
  };
  if ((flags & 1) != 0) add("mispredicted");
  if ((flags & 2) != 0) add("predicted");
  if ((flags & 4) != 0) add("in_transaction");
  if ((flags & 8) != 0) add("abort");
  const auto number = [&](const char* name, unsigned at, unsigned width) {
    const uint64_t value = (flags >> at) & ((uint64_t{1} << width) - 1);
    if (value != 0) add(fmt::format("{}={}", name, value));
  };
  number("cycles", 4, 16);
  number("type", 20, 4);
  number("spec", 24, 2);
  number("new_type", 26, 4);
  number("priv", 30, 3);
  return out;
}

std::string_view CpuMapKindName(uint16_t kind) {
  return kind == 0 ? "list" : kind == 1 ? "mask" : "range";
}

}  // namespace

void FieldLines::Enter(std::string_view name, size_t index) {
  path_.push_back(fmt::format("{}[{}].", name, index));
}

void FieldLines::Leave() { path_.pop_back(); }

std::string FieldLines::Path(std::string_view name) const {
  std::string out;
  for (const std::string& part : path_) out += part;
  return out.append(name);
}

void FieldLines::Line(size_t begin, std::string text) {
  lines_.push_back(options_.offsets ? fmt::format("  +{:#06x} {}", base_ + begin, text)
                                    : "  " + std::move(text));
}

void FieldLines::SubLine(std::string text) {
  lines_.push_back((options_.offsets ? "            " : "    ") + std::move(text));
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const std::string& value) {
  Line(begin, Path(info.name) + ": " + QuotedText(value));
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const std::vector<std::string>& value) {
  std::string text;
  for (const std::string& element : value) text += " " + QuotedText(element);
  Line(begin, Path(info.name) + ":" + text);
}

void FieldLines::Add(const FieldInfo& info, size_t begin, ByteView value) {
  std::string text = fmt::format("{}: {} bytes", Path(info.name), value.size());
  if (!value.empty()) text += ": " + HexBytes(value, options_.bytes_shown);
  Line(begin, std::move(text));
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const std::vector<uint32_t>& value) {
  std::string text = Path(info.name) + ":";
  for (const uint32_t element : value) text += fmt::format(" {}", element);
  Line(begin, std::move(text));
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const std::vector<uint64_t>& value) {
  if (info.display == Display::kHex) {
    Line(begin, fmt::format("{}: {}", Path(info.name), value.size()));
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string_view marker = info.sensitivity == Sensitivity::kCodeAddress
                                          ? CallchainMarkerName(value[i])
                                          : std::string_view();
      SubLine(marker.empty() ? fmt::format("[{}] {:#x}", i, value[i])
                             : fmt::format("[{}] {:#x} ({})", i, value[i], marker));
    }
    return;
  }
  std::string text = Path(info.name) + ":";
  for (const uint64_t element : value) text += fmt::format(" {}", element);
  Line(begin, std::move(text));
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const U64Array& value) {
  std::vector<uint64_t> words(value.size());
  for (size_t i = 0; i < words.size(); ++i) words[i] = value[i];
  Add(info, begin, words);
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const BranchArray& value) {
  Line(begin, fmt::format("{}: {}", Path(info.name), value.size()));
  for (size_t i = 0; i < value.size(); ++i) {
    const BranchEntry branch = value[i];
    SubLine(fmt::format("[{}] {:#x} -> {:#x} {}", i, branch.from, branch.to,
                        BranchFlagText(branch.flags)));
  }
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const SampledRegs& value) {
  Line(begin, fmt::format("{}: abi {}, mask {:#x}", Path(info.name), value.abi, value.mask));
  for (unsigned reg = 0; reg < 64; ++reg) {
    if (const auto content = value.Get(reg)) {
      SubLine(fmt::format("{} {:#x}", RegisterName(options_.arch, reg), *content));
    }
  }
  if (value.simd.empty()) return;
  SubLine(fmt::format("{} vectors of {} words, {} predicates of {} words", value.vectors,
                      value.vector_words, value.predicates, value.predicate_words));
  for (size_t i = 0; i < value.simd.size(); ++i)
    SubLine(fmt::format("[{}] {:#x}", i, value.simd[i]));
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const ReadValues& value) {
  std::string text = Path(info.name) + ":";
  if (value.time_enabled != 0) text += fmt::format(" time_enabled {}", value.time_enabled);
  if (value.time_running != 0) text += fmt::format(" time_running {}", value.time_running);
  Line(begin, std::move(text));
  for (const ReadValue& element : value.values) {
    SubLine(fmt::format("value {} id {} lost {}", element.value, element.id, element.lost));
  }
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const BuildId& value) {
  Line(begin, Path(info.name) + ": " + (value.empty() ? std::string("none") : value.ToHex()));
}

void FieldLines::Add(const FieldInfo& info, size_t begin, const CpuMap& value) {
  Line(begin, fmt::format("{}: {} {}{}", Path(info.name), CpuMapKindName(value.kind),
                          value.kind == 2 && value.cpus.size() == 2
                              ? fmt::format("{}-{}", value.cpus[0], value.cpus[1])
                              : NumberRanges(value.cpus),
                          value.any_cpu ? ", any CPU" : ""));
}

// The attr's own fields, by its layout, as far as its own size says.
void FieldLines::Add(const FieldInfo& info, size_t begin, const Attr& value) {
  const ByteView rest = bytes_.subspan(std::min(begin, bytes_.size()));
  ByteReader in(rest.first(std::min<size_t>(value.size, rest.size())), endian_);
  FieldLines nested(in.Rest(), endian_, base_ + begin, options_);
  nested.path_ = path_;
  nested.path_.push_back(std::string(info.name) + ".");
  Attr attr;
  DecodeFields(in, attr, WireScope(), nested);
  if (!in.ok()) nested.lines_.pop_back();  // fields that a shorter attr does not have
  lines_.insert(lines_.end(), std::make_move_iterator(nested.lines_.begin()),
                std::make_move_iterator(nested.lines_.end()));
}

}  // namespace stackreel::perfdata
