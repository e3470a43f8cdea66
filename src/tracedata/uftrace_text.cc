#include "tracedata/uftrace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/byte_reader.h"

namespace stackreel::tracedata {

namespace {

// Cuts the text up to `end` off, and `end` too.
std::string_view CutTo(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

std::string_view CutWord(std::string_view& text) {
  const size_t start = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(start);
  return CutTo(text, ' ');
}

template <typename Number>
bool ParseNumber(std::string_view text, Number& number, int base = 10) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return code == std::errc() && end == text.data() + text.size() && !text.empty();
}

// "13097.046023557" → nanoseconds.
bool ParseTime(std::string_view text, uint64_t& nanoseconds) {
  uint64_t seconds = 0, rest = 0;
  const std::string_view whole = CutTo(text, '.');
  if (!ParseNumber(whole, seconds) || text.size() != 9 || !ParseNumber(text, rest)) return false;
  if (seconds > UINT64_MAX / 2'000'000'000) return false;
  nanoseconds = seconds * 1'000'000'000 + rest;
  return true;
}

// The value of `name=value` or `name="value"` in a line.
std::string_view FieldOf(std::string_view line, std::string_view name) {
  for (size_t at = 0; (at = line.find(name, at)) != std::string_view::npos; at += name.size()) {
    const size_t end = at + name.size();
    if ((at != 0 && line[at - 1] != ' ') || end >= line.size() || line[end] != '=') continue;
    std::string_view value = line.substr(end + 1);
    if (!value.starts_with('"')) return value.substr(0, value.find(' '));
    value.remove_prefix(1);
    return value.substr(0, value.rfind('"'));
  }
  return {};
}

template <typename Line>
void EachLine(std::string_view text, Line line) {
  while (!text.empty()) line(CutTo(text, '\n'));
}

// "i32" and the like.
bool ParseFormat(std::string_view text, UftraceSpec& spec) {
  using Kind = ValueFormat::Kind;
  spec.format.kind = Kind::kNumber;
  spec.bytes = sizeof(uint64_t);
  if (text.empty()) return true;
  const char letter = text[0];
  text.remove_prefix(1);
  switch (letter) {
    case 'd':
      break;
    case 'i':
      spec.format.kind = Kind::kSigned;
      break;
    case 'u':
      spec.format.kind = Kind::kUnsigned;
      break;
    case 'x':
    case 'o':
      spec.format.kind = Kind::kHex;
      break;
    case 'p':
      spec.format.kind = Kind::kFunction;
      return true;
    case 's':
    case 'S':
      spec.format.kind = Kind::kString;
      return true;
    case 'c':
      spec.format.kind = Kind::kCharacter;
      spec.format.bytes = 1;
      spec.bytes = 1;
      return true;
    case 'f':
      spec.format.kind = Kind::kFloat;
      break;
    case 'e':  // "e:name"
      spec.format.kind = Kind::kEnumeration;
      spec.format.bytes = 4;  // of eight
      spec.enumeration = text.substr(std::min(text.find(':'), text.size() - 1) + 1);
      return true;
    case 't':  // "t16:name"
      spec.format.kind = Kind::kStruct;
      spec.format.bytes = 0;
      break;
    default:
      return false;
  }
  const std::string_view number = text.substr(0, text.find_first_not_of("0123456789"));
  if (number.empty()) return true;
  uint32_t size = 0;
  if (!ParseNumber(number, size)) return false;
  if (spec.format.kind == Kind::kStruct) {
    spec.bytes = size;
    return true;
  }
  size /= 8;
  if (size == 0 || size > 255) return false;
  spec.bytes = size;
  spec.format.bytes = static_cast<uint8_t>(size);
  return true;
}

// "name@specs;name@specs".
void ParseSpecList(std::string_view text, std::map<std::string, UftraceSpecs, std::less<>>& specs) {
  while (!text.empty()) {
    std::string_view one = CutTo(text, ';');
    const std::string_view name = CutTo(one, '@');
    UftraceSpecs parsed = ParseUftraceSpecs(one);
    UftraceSpecs& kept = specs[std::string(name)];
    if (!parsed.arguments.empty()) kept.arguments = std::move(parsed.arguments);
    if (!parsed.returns.empty()) kept.returns = std::move(parsed.returns);
  }
}

}  // namespace

UftraceSpecs ParseUftraceSpecs(std::string_view text) {
  UftraceSpecs specs;
  if (text.starts_with('@')) text.remove_prefix(1);
  while (!text.empty()) {
    std::string_view word = CutTo(text, ',');
    std::string_view which = CutTo(word, '/');
    which = which.substr(0, which.find('%'));  // where it is passed
    word = word.substr(0, word.find('%'));
    UftraceSpec spec;
    const bool is_float = which.starts_with("fparg");
    if (is_float) {
      spec.format.kind = ValueFormat::Kind::kFloat;
      uint32_t bits = 64;
      if (!word.empty()) ParseNumber(word, bits);
      spec.bytes = std::min<uint32_t>(bits, 128) / 8;
      spec.format.bytes = static_cast<uint8_t>(spec.bytes);
    } else if (!ParseFormat(word, spec)) {
      continue;
    }
    if (which == "retval") {
      specs.returns.push_back(std::move(spec));
    } else if (is_float || which.starts_with("arg")) {
      specs.arguments.push_back(std::move(spec));
    }
  }
  return specs;
}

Result<UftraceInfo> ParseUftraceInfo(ByteView bytes) {
  UftraceInfo info;
  if (bytes.size() < kUftraceHeadSize || !AsText(bytes).starts_with(kUftraceMagic)) {
    return Fail(Error(ErrorKind::kDamaged, "not an info file of uftrace").AtOffset(0));
  }
  ByteReader reader(bytes);
  reader.Skip(kUftraceMagic.size());
  info.version = reader.U32();
  const uint16_t head_size = reader.U16();
  const uint8_t endian = reader.U8(), word_class = reader.U8();
  info.features = reader.U64();
  if (endian != 1 || word_class != 2) {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("a recording of uftrace in byte order {} and class {}; only 1 "
                            "(little-endian) and 2 (64-bit) can be read",
                            endian, word_class));
  }
  if (info.version != 3 && info.version != 4) {
    return Fail(
        ErrorKind::kUnsupported,
        fmt::format("version {} of uftrace's format; this program reads 3 and 4", info.version));
  }
  const size_t start = std::clamp<size_t>(head_size, kUftraceHeadSize, bytes.size());
  EachLine(AsText(bytes.subspan(start)), [&](std::string_view line) {
    const std::string_view name = CutTo(line, ':');
    if (name == "argspec" || name == "retspec") {
      ParseSpecList(line, info.specs);
    } else if (name == "argauto" || name == "retauto") {
      ParseSpecList(line, info.built_in_specs);
    } else if (name == "enumauto") {
      info.enumerations = ParseUftraceEnumerations(line);
    } else if (const size_t equals = line.find('='); equals < line.find(' ') && name != "cmdline") {
      info.lines[fmt::format("{}:{}", name, line.substr(0, equals))] = line.substr(equals + 1);
    } else {
      info.lines[std::string(name)] = line;
    }
  });
  return info;
}

std::vector<UftraceTaskLine> ParseUftraceTasks(std::string_view text, Counters& counters) {
  using Kind = UftraceTaskLine::Kind;
  std::vector<UftraceTaskLine> lines;
  EachLine(text, [&](std::string_view line) {
    std::string_view rest = line;
    const std::string_view word = CutTo(rest, ' ');
    UftraceTaskLine task;
    bool ok = ParseTime(FieldOf(line, "timestamp"), task.nanoseconds);
    if (word == "SESS") {
      task.kind = Kind::kSession;
      ok = ok && ParseNumber(FieldOf(line, "pid"), task.pid);
      task.name = FieldOf(line, "exename");
    } else if (word == "TASK") {
      task.kind = Kind::kTask;
      ok = ok && ParseNumber(FieldOf(line, "tid"), task.tid) &&
           ParseNumber(FieldOf(line, "pid"), task.pid);
    } else if (word == "FORK") {
      task.kind = Kind::kFork;
      ok = ok && ParseNumber(FieldOf(line, "pid"), task.pid) &&
           ParseNumber(FieldOf(line, "ppid"), task.parent_pid);
      task.tid = task.pid;
    } else if (word == "DLOP") {
      task.kind = Kind::kLibrary;
      ok = ok && ParseNumber(FieldOf(line, "tid"), task.tid) &&
           ParseNumber(FieldOf(line, "base"), task.base, 16);
      task.name = FieldOf(line, "libname");
    } else {
      ok = false;
    }
    task.sid = FieldOf(line, "sid");
    // They become names of files.
    ok = ok && task.sid.find('/') == std::string::npos;
    if (ok) {
      lines.push_back(std::move(task));
    } else {
      counters.Add("uftrace.bad_line");
    }
  });
  return lines;
}

std::vector<UftraceMapping> ParseUftraceMap(std::string_view text, Counters& counters) {
  std::vector<UftraceMapping> mappings;
  EachLine(text, [&](std::string_view line) {
    UftraceMapping mapping;
    std::string_view range = CutWord(line);
    const std::string_view start = CutTo(range, '-');
    if (!ParseNumber(start, mapping.start, 16) || !ParseNumber(range, mapping.end, 16) ||
        mapping.start >= mapping.end) {
      counters.Add("uftrace.bad_line");
      return;
    }
    for (int i = 0; i < 4; ++i) CutWord(line);  // permissions, offset, device, inode
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (const size_t id = line.rfind(" build-id:"); id != std::string_view::npos) {
      const std::string_view hex = line.substr(id + 10);
      mapping.build_id = BuildId::FromHex(hex).value_or(BuildId());
      line = line.substr(0, id);
    }
    mapping.path = line;
    if (mapping.path.empty() || mapping.path.starts_with('[')) return;
    const auto same = std::ranges::find(mappings, mapping.path, &UftraceMapping::path);
    if (same == mappings.end()) {
      mappings.push_back(std::move(mapping));
    } else {
      same->start = std::min(same->start, mapping.start);
      same->end = std::max(same->end, mapping.end);
    }
  });
  std::ranges::sort(mappings, {}, &UftraceMapping::start);
  return mappings;
}

std::vector<UftraceSymbol> ParseUftraceSymbols(std::string_view text, Counters& counters) {
  std::vector<UftraceSymbol> symbols;
  EachLine(text, [&](std::string_view line) {
    if (line.starts_with('#')) return;
    UftraceSymbol symbol;
    const std::string_view address = CutWord(line);
    std::string_view type = CutWord(line);
    bool ok = ParseNumber(address, symbol.address, 16);
    if (type.size() > 1) {  // later versions tell the size, too
      ok = ok && ParseNumber(type, symbol.size, 16);
      type = CutWord(line);
    }
    symbol.is_end = type == "?";
    symbol.name = line;
    if (!ok || type.size() != 1 || symbol.name.empty()) {
      counters.Add("uftrace.bad_line");
    } else {
      symbols.push_back(std::move(symbol));
    }
  });
  std::ranges::stable_sort(symbols, {}, &UftraceSymbol::address);
  return symbols;
}

std::vector<TraceEnumeration> ParseUftraceEnumerations(std::string_view text) {
  std::vector<TraceEnumeration> all;
  while (true) {
    const size_t start = text.find("enum ");
    const size_t brace = text.find('{');
    if (start == std::string_view::npos || brace == std::string_view::npos || brace < start) break;
    TraceEnumeration& one = all.emplace_back();
    std::string_view head = text.substr(start + 5, brace - start - 5);
    one.name = CutWord(head);
    std::string_view body = text.substr(brace + 1);
    body = body.substr(0, body.find('}'));
    text.remove_prefix(brace + 1 + body.size());
    int64_t value = 0;
    while (!body.empty()) {
      std::string_view item = CutTo(body, ',');
      std::string_view name = CutTo(item, '=');
      name = CutWord(name);
      std::string_view number = CutWord(item);
      if (name.empty()) continue;
      if (!number.empty()) {
        // As C writes them: 12, -1, 0x10, 010.
        const bool hex = number.starts_with("0x");
        const bool octal = !hex && number.starts_with('0') && number.size() > 1;
        if (hex) number.remove_prefix(2);
        if (!ParseNumber(number, value, hex ? 16 : octal ? 8 : 10)) continue;
      }
      one.names.push_back({value, std::string(name)});
      if (value < INT64_MAX) ++value;
    }
  }
  return all;
}

UftraceDebug ParseUftraceDebug(std::string_view text) {
  UftraceDebug debug;
  auto& specs = debug.specs;
  uint64_t address = 0;
  EachLine(text, [&](std::string_view line) {
    if (line.starts_with("F: ")) {
      line.remove_prefix(3);
      if (!ParseNumber(CutTo(line, ' '), address, 16)) address = 0;
    } else if (line.starts_with("A: ")) {
      specs[address].arguments = ParseUftraceSpecs(line.substr(3)).arguments;
    } else if (line.starts_with("R: ")) {
      specs[address].returns = ParseUftraceSpecs(line.substr(3)).returns;
    } else if (line.starts_with("E: ")) {
      std::ranges::move(ParseUftraceEnumerations(line.substr(3)),
                        std::back_inserter(debug.enumerations));
    }
  });
  return debug;
}

}  // namespace stackreel::tracedata
