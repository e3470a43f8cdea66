#include "perfdata/print_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace stackreel::perfdata {
namespace {

using Kind = PrintNode::Kind;

// A width or precision beyond this is a damaged file's.
constexpr size_t kMaxWidth = 1000;

// One conversion: "%-16.4llx".
struct Conversion {
  bool left = false, zeros = false, alternate = false, plus = false, blank = false;
  bool width_is_argument = false, precision_is_argument = false;
  size_t width = 0;
  std::optional<size_t> precision;
  int longs = 0;        // l: 1, ll: 2, h: -1, hh: -2
  char kind = '\0';     // d u i x X o c s p %
  char pointer = '\0';  // %pS: S
};

size_t TakeNumber(std::string_view& text) {
  size_t value = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    value = std::min<size_t>(value * 10 + static_cast<size_t>(text.front() - '0'), kMaxWidth);
    text.remove_prefix(1);
  }
  return value;
}

bool TakeChar(std::string_view& text, char c) {
  const bool is = text.starts_with(c);
  if (is) text.remove_prefix(1);
  return is;
}

// Reads what follows a '%'. Nothing if it is not a conversion that is known.
std::optional<Conversion> ReadConversion(std::string_view& text) {
  Conversion to;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [c, flag] :
         {std::pair('-', &to.left), std::pair('0', &to.zeros), std::pair('#', &to.alternate),
          std::pair('+', &to.plus), std::pair(' ', &to.blank)}) {
      if (!TakeChar(text, c)) continue;
      *flag = true;
      more = true;
    }
  }
  to.width_is_argument = TakeChar(text, '*');
  if (!to.width_is_argument) to.width = TakeNumber(text);
  if (TakeChar(text, '.')) {
    to.precision_is_argument = TakeChar(text, '*');
    if (!to.precision_is_argument) to.precision = TakeNumber(text);
  }
  while (TakeChar(text, 'h')) --to.longs;
  while (TakeChar(text, 'l')) ++to.longs;
  if (TakeChar(text, 'L')) to.longs = 2;
  if (TakeChar(text, 'z') || TakeChar(text, 'Z') || TakeChar(text, 'j')) to.longs = 1;
  if (text.empty() || std::string_view("duixXocsp%").find(text.front()) == std::string::npos) {
    return std::nullopt;
  }
  to.kind = text.front();
  text.remove_prefix(1);
  if (to.kind != 'p' || text.empty()) return to;
  const char next = text.front();
  if (std::string_view("SsFfBxK").find(next) != std::string_view::npos) {
    to.pointer = next;
    text.remove_prefix(1);
  } else if ((next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z')) {
    return std::nullopt;  // addresses of networks, bitmaps, UUIDs …
  }
  return to;
}

void AppendPadded(std::string_view text, const Conversion& to, std::string& out) {
  const size_t blanks = to.width > text.size() ? to.width - text.size() : 0;
  if (!to.left) out.append(blanks, ' ');
  out += text;
  if (to.left) out.append(blanks, ' ');
}

// As printf does.
void AppendInteger(uint64_t value, const Conversion& to, unsigned bytes, std::string& out) {
  if (bytes < 8) value &= (uint64_t{1} << (8 * bytes)) - 1;
  std::string prefix;
  if (to.kind == 'd' || to.kind == 'i') {
    const bool negative = (value >> (8 * bytes - 1)) != 0;
    if (negative) value = ~value + 1;
    if (bytes < 8) value &= (uint64_t{1} << (8 * bytes)) - 1;
    prefix = negative ? "-" : to.plus ? "+" : to.blank ? " " : "";
  }
  const bool hex = to.kind == 'x' || to.kind == 'X';
  if (to.alternate && hex && value != 0) prefix = to.kind == 'x' ? "0x" : "0X";
  char digits[24];
  const int base = hex ? 16 : to.kind == 'o' ? 8 : 10;
  std::string number(digits, std::to_chars(digits, std::end(digits), value, base).ptr);
  if (to.kind == 'X') {
    for (char& c : number) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  if (to.alternate && to.kind == 'o' && value != 0) number.insert(0, "0");
  size_t least = to.precision.value_or(1);
  if (to.precision == 0 && value == 0) number.clear();
  if (to.zeros && !to.left && !to.precision && to.width > prefix.size()) {
    least = to.width - prefix.size();
  }
  if (number.size() < least) number.insert(0, least - number.size(), '0');
  AppendPadded(prefix + number, to, out);
}

class Printer {
 public:
  Printer(const PrintFormat& print, const PrintInput& input) : print_(print), input_(input) {}
  void Run(std::string& out);
  [[nodiscard]] uint64_t Value(uint32_t index) const;

 private:
  [[nodiscard]] const PrintNode& Node(uint32_t index) const { return print_.nodes[index]; }
  [[nodiscard]] uint64_t Binary(const PrintNode& node) const;
  [[nodiscard]] uint64_t Element(const PrintNode& node) const;
  [[nodiscard]] ByteView Bytes(uint32_t index) const;
  void AppendString(uint32_t index, const Conversion& to, std::string& out) const;
  void AppendFlags(const PrintNode& node, std::string& out) const;
  void AppendSymbolic(const PrintNode& node, std::string& out) const;
  void AppendHex(const PrintNode& node, std::string& out) const;
  void AppendNumbers(const PrintNode& node, std::string& out) const;
  void AppendLiteral(uint64_t address, const Conversion& to, std::string& out) const;
  void AppendPointer(uint64_t value, const Conversion& to, std::string& out) const;
  void AppendArgument(uint32_t index, const Conversion& to, std::string& out) const;

  const PrintFormat& print_;
  const PrintInput& input_;
};

// Operands are unsigned and 64 bits wide, whatever C would make of them: libtraceevent's way.
uint64_t Printer::Binary(const PrintNode& node) const {
  const uint64_t a = Value(node.children[0]);
  if (node.op == '&' && node.op2 == '&') return a != 0 && Value(node.children[1]) != 0 ? 1 : 0;
  if (node.op == '|' && node.op2 == '|') return a != 0 || Value(node.children[1]) != 0 ? 1 : 0;
  const uint64_t b = Value(node.children[1]);
  switch (node.op) {
    case '<':
      if (node.op2 == '<') return b < 64 ? a << b : 0;
      return node.op2 == '=' ? a <= b : a < b;
    case '>':
      if (node.op2 == '>') return b < 64 ? a >> b : 0;
      return node.op2 == '=' ? a >= b : a > b;
    case '=':
      return a == b;
    case '!':
      return a != b;
    case '|':
      return a | b;
    case '&':
      return a & b;
    case '^':
      return a ^ b;
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return b == 0 ? 0 : a / b;
    default:
      return b == 0 ? 0 : a % b;
  }
}

uint64_t Printer::Element(const PrintNode& node) const {
  const PrintNode& array = Node(node.children[0]);
  if (array.kind != Kind::kField && array.kind != Kind::kArray) return 0;
  const TraceField& field = input_.fields[array.field];
  const uint64_t index = Value(node.children[1]);
  const ByteView bytes = Bytes(node.children[0]);
  if (field.element_size == 0 || index >= bytes.size() / field.element_size) return 0;
  TraceField element;
  element.offset = static_cast<uint32_t>(index * field.element_size);
  element.size = field.element_size;
  return FieldNumber(bytes, element, input_.endian);
}

uint64_t Printer::Value(uint32_t index) const {
  const PrintNode& node = Node(index);
  switch (node.kind) {
    case Kind::kNumber:
      return node.value;
    case Kind::kField:
      return FieldNumber(input_.raw, input_.fields[node.field], input_.endian);
    case Kind::kElement:
      return Element(node);
    case Kind::kUnary: {
      const uint64_t value = Value(node.children[0]);
      if (node.op == '!') return value == 0 ? 1 : 0;
      return node.op == '~' ? ~value : node.op == '-' ? ~value + 1 : value;
    }
    case Kind::kBinary:
      return Binary(node);
    case Kind::kChoice:
      return Value(node.children[Value(node.children[0]) != 0 ? 1 : 2]);
    case Kind::kCast: {
      const uint64_t value = Value(node.children[0]);
      if (node.value == 0 || node.value >= 8) return value;
      const unsigned unused = 64 - 8 * static_cast<unsigned>(node.value);
      const uint64_t high = value << unused;
      return node.op == '-' ? static_cast<uint64_t>(static_cast<int64_t>(high) >> unused)
                            : high >> unused;
    }
    case Kind::kArrayLength:
      return ArrayBytes(input_.raw, input_.fields[node.field], input_.endian).size();
    default:
      return 0;
  }
}

ByteView Printer::Bytes(uint32_t index) const {
  const PrintNode& node = Node(index);
  if (node.kind != Kind::kField && node.kind != Kind::kText && node.kind != Kind::kArray) return {};
  return ArrayBytes(input_.raw, input_.fields[node.field], input_.endian);
}

void Printer::AppendFlags(const PrintNode& node, std::string& out) const {
  uint64_t value = Value(node.children[0]);
  const char* separator = "";
  for (const auto& [flag, name] : node.names) {
    const bool is_none = value == 0 && flag == 0;
    if (!is_none && (flag == 0 || (value & flag) != flag)) continue;
    out += separator;
    out += name;
    separator = node.text.c_str();
    if (is_none) return;
    value &= ~flag;
  }
  if (value != 0) fmt::format_to(std::back_inserter(out), "{}{:#x}", separator, value);
}

void Printer::AppendSymbolic(const PrintNode& node, std::string& out) const {
  const uint64_t value = Value(node.children[0]);
  for (const auto& [number, name] : node.names) {
    if (number != value) continue;
    out += name;
    return;
  }
  fmt::format_to(std::back_inserter(out), "{:#x}", value);
}

void Printer::AppendHex(const PrintNode& node, std::string& out) const {
  const ByteView bytes = Bytes(node.children[0]);
  const size_t count = std::min<uint64_t>(bytes.size(), Value(node.children[1]));
  const char* separator = "";
  for (const uint8_t byte : bytes.first(count)) {
    fmt::format_to(std::back_inserter(out), "{}{:02x}", separator, byte);
    if (node.kind == Kind::kHex) separator = " ";
  }
}

// "{0x1,0x2}"
void Printer::AppendNumbers(const PrintNode& node, std::string& out) const {
  const ByteView bytes = Bytes(node.children[0]);
  TraceField element;
  element.size = static_cast<uint32_t>(std::min<uint64_t>(Value(node.children[2]), 8));
  if (element.size == 0) element.size = 1;
  const uint64_t count = std::min<uint64_t>(Value(node.children[1]), bytes.size() / element.size);
  out += '{';
  for (uint64_t i = 0; i < count; ++i) {
    element.offset = static_cast<uint32_t>(i * element.size);
    fmt::format_to(std::back_inserter(out), "{}{:#x}", i == 0 ? "" : ",",
                   FieldNumber(bytes, element, input_.endian));
  }
  out += '}';
}

// What a %s shows.
void Printer::AppendString(uint32_t index, const Conversion& to, std::string& out) const {
  const PrintNode& node = Node(index);
  std::string_view text;
  switch (node.kind) {
    case Kind::kFlags:
      return AppendFlags(node, out);
    case Kind::kSymbolic:
      return AppendSymbolic(node, out);
    case Kind::kHex:
    case Kind::kHexString:
      return AppendHex(node, out);
    case Kind::kNumbers:
      return AppendNumbers(node, out);
    case Kind::kChoice:
      return AppendString(node.children[Value(node.children[0]) != 0 ? 1 : 2], to, out);
    case Kind::kString:
      text = node.text;
      break;
    case Kind::kField:
      if (!input_.fields[node.field].is_array) {
        return AppendLiteral(Value(index), to, out);
      }
      [[fallthrough]];
    case Kind::kText:
      text = AsText(Bytes(index));
      text = text.substr(0, text.find('\0'));
      break;
    default:
      return;
  }
  AppendPadded(text.substr(0, to.precision.value_or(text.size())), to, out);
}

// The kernel's text at an address; the address itself if the recording does not have it.
void Printer::AppendLiteral(uint64_t address, const Conversion& to, std::string& out) const {
  if (input_.literals != nullptr) {
    const auto found = input_.literals->find(address);
    if (found != input_.literals->end()) return AppendPadded(found->second, to, out);
  }
  fmt::format_to(std::back_inserter(out), "{:x}", address);
}

void Printer::AppendPointer(uint64_t value, const Conversion& to, std::string& out) const {
  std::string name;
  uint64_t offset = 0;
  const bool is_function =
      to.pointer != '\0' && std::string_view("SsFfB").find(to.pointer) != std::string_view::npos;
  if (is_function && input_.resolve && input_.resolve(value, name, offset)) {
    out += name;
    if (to.pointer == 'S' || to.pointer == 'F') {
      fmt::format_to(std::back_inserter(out), "+{:#x}", offset);
    }
    return;
  }
  AppendPadded(value == 0 ? "(nil)" : fmt::format("{:#x}", value), to, out);
}

void Printer::AppendArgument(uint32_t index, const Conversion& to, std::string& out) const {
  switch (to.kind) {
    case 's':
      return AppendString(index, to, out);
    case 'p':
      return AppendPointer(Value(index), to, out);
    case 'c': {
      const char c = static_cast<char>(Value(index));
      return AppendPadded(std::string_view(&c, 1), to, out);
    }
    default: {
      const unsigned bytes = to.longs <= -2   ? 1
                             : to.longs == -1 ? 2
                             : to.longs == 0  ? 4
                             : to.longs == 1  ? input_.long_size
                                              : 8;
      AppendInteger(Value(index), to, bytes, out);
    }
  }
}

void Printer::Run(std::string& out) {
  std::string_view format = print_.format;
  size_t argument = 0;
  const auto star = [&] {
    const uint64_t value =
        argument < print_.arguments.size() ? Value(print_.arguments[argument++]) : 0;
    return static_cast<size_t>(std::min<uint64_t>(value, kMaxWidth));
  };
  while (!format.empty()) {
    const size_t percent = std::min(format.find('%'), format.size());
    out += format.substr(0, percent);
    format.remove_prefix(percent);
    if (format.empty()) break;
    format.remove_prefix(1);
    std::optional<Conversion> to = ReadConversion(format);
    if (!to) return;
    if (to->kind == '%') {
      out += '%';
      continue;
    }
    if (to->width_is_argument) to->width = star();
    if (to->precision_is_argument) to->precision = star();
    if (argument >= print_.arguments.size()) return;
    AppendArgument(print_.arguments[argument++], *to, out);
  }
}

}  // namespace

bool KnowsConversions(std::string_view format) {
  for (size_t at = format.find('%'); at != std::string_view::npos; at = format.find('%')) {
    format.remove_prefix(at + 1);
    if (!ReadConversion(format)) return false;
  }
  return true;
}

uint64_t ConstantValue(const PrintFormat& print, uint32_t root) {
  static const std::vector<TraceField> kNoFields;
  static const TraceFormat::Resolver kNoResolver;
  const PrintInput input{{}, kNoFields, Endian::kLittle, 8, kNoResolver};
  return Printer(print, input).Value(root);
}

void AppendPrintText(const PrintFormat& print, const PrintInput& input, std::string& out) {
  Printer(print, input).Run(out);
}

}  // namespace stackreel::perfdata
