#include "perfdata/print_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "perfdata/print_text.h"
#include "perfdata/trace_format.h"

namespace stackreel::perfdata {
namespace {

using Kind = PrintNode::Kind;

// Bounds for what a damaged file may ask for; the kernel's largest have a few hundred nodes.
constexpr uint32_t kMaxDepth = 200;
constexpr size_t kMaxNodes = 20'000;

struct Token {
  enum class Kind : uint8_t { kEnd, kName, kNumber, kString, kOperator };
  Kind kind = Kind::kEnd;
  std::string_view text;
  std::string value;  // of a string, unescaped

  [[nodiscard]] bool Is(std::string_view op) const { return kind == Kind::kOperator && text == op; }
};

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token Next();

 private:
  Token String();

  std::string_view text_;
};

// "abc\n": the quote is the first character.
Token Lexer::String() {
  Token token{Token::Kind::kString, {}, {}};
  size_t at = 1;
  for (; at < text_.size() && text_[at] != '"'; ++at) {
    char c = text_[at];
    if (c == '\\' && at + 1 < text_.size()) {
      c = text_[++at];
      c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    token.value += c;
  }
  text_.remove_prefix(std::min(at + 1, text_.size()));
  return token;
}

Token Lexer::Next() {
  while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
    text_.remove_prefix(1);
  }
  if (text_.empty()) return {};
  if (text_.front() == '"') return String();
  size_t size = 0;
  Token::Kind kind = Token::Kind::kOperator;
  if (IsNameChar(text_.front())) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text_.front())) != 0;
    kind = digit ? Token::Kind::kNumber : Token::Kind::kName;
    while (size < text_.size() && IsNameChar(text_[size])) ++size;
  } else {
    static constexpr std::array<std::string_view, 9> kDouble = {
        "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    const std::string_view two = text_.substr(0, 2);
    size = std::find(kDouble.begin(), kDouble.end(), two) != kDouble.end() ? 2 : 1;
  }
  const Token token{kind, text_.substr(0, size), {}};
  text_.remove_prefix(size);
  return token;
}

// Names in capitals are constants; __print_symbolic and REC start values, too.
bool IsTypeName(std::string_view name) {
  const bool is_constant =
      std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return !is_constant && !name.starts_with("__print") && !name.starts_with("__get") &&
         !name.starts_with("__builtin") && name != "sizeof";
}

// Binary operators by how tightly they bind, as in C.
int Precedence(const Token& token) {
  static constexpr std::array<std::pair<std::string_view, int>, 18> kOperators = {{{"||", 1},
                                                                                   {"&&", 2},
                                                                                   {"|", 3},
                                                                                   {"^", 4},
                                                                                   {"&", 5},
                                                                                   {"==", 6},
                                                                                   {"!=", 6},
                                                                                   {"<", 7},
                                                                                   {">", 7},
                                                                                   {"<=", 7},
                                                                                   {">=", 7},
                                                                                   {"<<", 8},
                                                                                   {">>", 8},
                                                                                   {"+", 9},
                                                                                   {"-", 9},
                                                                                   {"*", 10},
                                                                                   {"/", 10},
                                                                                   {"%", 10}}};
  if (token.kind != Token::Kind::kOperator) return 0;
  for (const auto& [text, precedence] : kOperators) {
    if (text == token.text) return precedence;
  }
  return 0;
}

// Every method gives nothing where the text is not understood.
using NodeIndex = std::optional<uint32_t>;

class Parser {
 public:
  Parser(std::string_view text, const std::vector<TraceField>& fields, unsigned long_size)
      : lexer_(text), fields_(fields), long_size_(long_size) {
    Advance();
  }
  std::optional<PrintFormat> Run();

 private:
  struct Type {
    unsigned size = 0;
    bool is_signed = false;
    bool is_pointer = false;
  };

  void Advance() { token_ = lexer_.Next(); }
  bool Take(std::string_view op) {
    const bool is = token_.Is(op);
    if (is) Advance();
    return is;
  }
  // Strings side by side are one.
  std::string Strings() {
    std::string text;
    for (; token_.kind == Token::Kind::kString; Advance()) text += token_.value;
    return text;
  }
  NodeIndex Add(PrintNode node, std::initializer_list<uint32_t> children = {}) {
    std::copy(children.begin(), children.end(), node.children);
    for (const uint32_t child : children) {
      node.depth = std::max(node.depth, out_.nodes[child].depth + 1);
    }
    if (out_.nodes.size() >= kMaxNodes || node.depth > kMaxDepth) return std::nullopt;
    out_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(out_.nodes.size() - 1);
  }
  NodeIndex Expression();
  NodeIndex Binary(int min_precedence);
  NodeIndex Unary();
  NodeIndex Postfix();
  NodeIndex Primary();
  NodeIndex Number();
  NodeIndex String();
  NodeIndex Parenthesis();
  NodeIndex Record();
  NodeIndex Call(std::string_view name);
  NodeIndex CallWithNames(Kind kind);
  NodeIndex CallWithField(Kind kind);
  NodeIndex CallWithArguments(Kind kind, int count);
  std::optional<Type> TypeName();
  std::optional<uint64_t> Constant();
  bool Names(PrintNode& node);
  std::optional<uint32_t> FieldNamed(std::string_view name) const;

  Lexer lexer_;
  const std::vector<TraceField>& fields_;
  unsigned long_size_;
  Token token_;
  PrintFormat out_;
  uint32_t depth_ = 0;
  bool knows_all_names_ = true;
};

std::optional<PrintFormat> Parser::Run() {
  if (token_.kind != Token::Kind::kString) return std::nullopt;
  out_.format = Strings();
  while (Take(",")) {
    const NodeIndex argument = Expression();
    if (!argument) return std::nullopt;
    out_.arguments.push_back(*argument);
  }
  if (token_.kind != Token::Kind::kEnd) return std::nullopt;
  return std::move(out_);
}

NodeIndex Parser::Expression() {
  if (++depth_ > kMaxDepth) return std::nullopt;
  NodeIndex condition = Binary(1);
  if (condition && Take("?")) {
    const NodeIndex yes = Expression();
    const NodeIndex no = yes && Take(":") ? Expression() : std::nullopt;
    if (!no) return std::nullopt;
    PrintNode node;
    node.kind = Kind::kChoice;
    condition = Add(std::move(node), {*condition, *yes, *no});
  }
  --depth_;
  return condition;
}

NodeIndex Parser::Binary(int min_precedence) {
  NodeIndex left = Unary();
  while (left) {
    const int precedence = Precedence(token_);
    if (precedence < min_precedence) break;
    PrintNode node;
    node.kind = Kind::kBinary;
    node.op = token_.text[0];
    node.op2 = token_.text.size() > 1 ? token_.text[1] : '\0';
    Advance();
    const NodeIndex right = Binary(precedence + 1);
    if (!right) return std::nullopt;
    left = Add(std::move(node), {*left, *right});
  }
  return left;
}

NodeIndex Parser::Unary() {
  for (const std::string_view op : {"!", "~", "-", "+"}) {
    if (!token_.Is(op)) continue;
    Advance();
    if (++depth_ > kMaxDepth) return std::nullopt;
    const NodeIndex operand = Unary();
    --depth_;
    if (!operand) return std::nullopt;
    PrintNode node;
    node.kind = Kind::kUnary;
    node.op = op[0];
    return Add(std::move(node), {*operand});
  }
  return Postfix();
}

NodeIndex Parser::Postfix() {
  NodeIndex base = Primary();
  while (base && Take("[")) {
    const NodeIndex index = Expression();
    if (!index || !Take("]")) return std::nullopt;
    PrintNode node;
    node.kind = Kind::kElement;
    base = Add(std::move(node), {*base, *index});
  }
  return base;
}

NodeIndex Parser::Primary() {
  if (token_.kind == Token::Kind::kNumber) return Number();
  if (token_.kind == Token::Kind::kString) return String();
  if (Take("(")) return Parenthesis();
  if (token_.kind != Token::Kind::kName) return std::nullopt;
  const std::string_view name = token_.text;
  Advance();
  if (name == "REC") return Record();
  if (token_.Is("(")) return Call(name);
  // A constant or a variable of the kernel's, whose value no recording has: 0, as perf takes it.
  knows_all_names_ = false;
  return Add({});
}

// "10", "0x1f", "010", with u, l after it.
NodeIndex Parser::Number() {
  std::string_view digits = token_.text;
  Advance();
  while (!digits.empty() && std::string_view("uUlL").find(digits.back()) != std::string::npos) {
    digits.remove_suffix(1);
  }
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits.front() == '0') {
    base = 8;
  }
  PrintNode node;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, node.value, base);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return Add(std::move(node));
}

NodeIndex Parser::String() {
  PrintNode node;
  node.kind = Kind::kString;
  node.text = Strings();
  return Add(std::move(node));
}

// "(unsigned long)x" or "(x)"; the parenthesis is taken.
NodeIndex Parser::Parenthesis() {
  if (token_.kind == Token::Kind::kName && IsTypeName(token_.text)) {
    const std::optional<Type> type = TypeName();
    if (!type || !Take(")")) return std::nullopt;
    if (++depth_ > kMaxDepth) return std::nullopt;
    const NodeIndex operand = Unary();
    --depth_;
    if (!operand || type->is_pointer) return operand;
    PrintNode node;
    node.kind = Kind::kCast;
    node.op = type->is_signed ? '-' : '\0';
    node.value = type->size;
    return Add(std::move(node), {*operand});
  }
  const NodeIndex inner = Expression();
  return inner && Take(")") ? inner : std::nullopt;
}

// Words of a type, up to the parenthesis that closes it.
std::optional<Parser::Type> Parser::TypeName() {
  Type type{0, true, false};  // of a type that is not known values stay as they are
  int longs = 0;
  while (token_.kind == Token::Kind::kName) {
    const std::string_view word = token_.text;
    if (word == "unsigned" || word == "bool") type.is_signed = false;
    if (type.size == 0 && (word == "int" || word == "unsigned" || word == "signed")) type.size = 4;
    if (word == "long") ++longs;
    if (word == "char" || word == "bool") type.size = 1;
    if (word == "short") type.size = 2;
    // u8, s32, __u64, uint16_t …
    const size_t digits = word.find_first_of("0123456789");
    if (digits != std::string_view::npos && digits > 0) {
      unsigned bits = 0;
      std::from_chars(word.data() + digits, word.data() + word.size(), bits);
      if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return std::nullopt;
      type.size = bits / 8;
      type.is_signed = word.find('u') > digits;
    }
    if (word == "size_t" || word == "uintptr_t") type = {long_size_, false, false};
    Advance();
  }
  if (longs > 0) type.size = longs > 1 ? 8 : long_size_;
  while (Take("*")) type.is_pointer = true;
  return type;
}

std::optional<uint32_t> Parser::FieldNamed(std::string_view name) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

// "->name"; REC is taken.
NodeIndex Parser::Record() {
  if (!Take("->") || token_.kind != Token::Kind::kName) return std::nullopt;
  const std::optional<uint32_t> field = FieldNamed(token_.text);
  if (!field) return std::nullopt;
  Advance();
  PrintNode node;
  node.kind = Kind::kField;
  node.field = *field;
  return Add(std::move(node));
}

NodeIndex Parser::Call(std::string_view name) {
  Advance();  // the parenthesis
  if (++depth_ > kMaxDepth) return std::nullopt;
  NodeIndex call;
  if (name == "__print_flags") {
    call = CallWithNames(Kind::kFlags);
  } else if (name == "__print_symbolic") {
    call = CallWithNames(Kind::kSymbolic);
  } else if (name == "__get_str" || name == "__get_rel_str") {
    call = CallWithField(Kind::kText);
  } else if (name == "__get_dynamic_array" || name == "__get_rel_dynamic_array") {
    call = CallWithField(Kind::kArray);
  } else if (name == "__get_dynamic_array_len" || name == "__get_rel_dynamic_array_len") {
    call = CallWithField(Kind::kArrayLength);
  } else if (name == "__print_hex") {
    call = CallWithArguments(Kind::kHex, 2);
  } else if (name == "__print_hex_str") {
    call = CallWithArguments(Kind::kHexString, 2);
  } else if (name == "__print_array") {
    call = CallWithArguments(Kind::kNumbers, 3);
  } else if (name == "__builtin_expect") {
    call = Expression();
    if (call && (!Take(",") || !Expression())) call = std::nullopt;
  } else if (name == "sizeof") {
    const std::optional<Type> type = TypeName();
    PrintNode node;
    if (type) node.value = type->is_pointer ? long_size_ : type->size;
    if (type) call = Add(std::move(node));
  }
  --depth_;
  return call && Take(")") ? call : std::nullopt;
}

NodeIndex Parser::CallWithField(Kind kind) {
  if (token_.kind != Token::Kind::kName) return std::nullopt;
  const std::optional<uint32_t> field = FieldNamed(token_.text);
  if (!field || fields_[*field].place == TraceField::Place::kHere) return std::nullopt;
  Advance();
  PrintNode node;
  node.kind = kind;
  node.field = *field;
  return Add(std::move(node));
}

NodeIndex Parser::CallWithArguments(Kind kind, int count) {
  PrintNode node;
  node.kind = kind;
  uint32_t arguments[3] = {0, 0, 0};
  for (int i = 0; i < count; ++i) {
    if (i > 0 && !Take(",")) return std::nullopt;
    const NodeIndex argument = Expression();
    if (!argument) return std::nullopt;
    arguments[i] = *argument;
  }
  // Where there are two, the third is the second again.
  return Add(std::move(node), {arguments[0], arguments[1], arguments[count - 1]});
}

// value, ["delimiter",] { number, "name" }, …
NodeIndex Parser::CallWithNames(Kind kind) {
  PrintNode node;
  node.kind = kind;
  const NodeIndex value = Expression();
  if (!value || !Take(",")) return std::nullopt;
  if (kind == Kind::kFlags) {
    if (token_.kind != Token::Kind::kString) return std::nullopt;
    node.text = Strings();
    if (!Take(",")) return std::nullopt;
  }
  return Names(node) ? Add(std::move(node), {*value}) : std::nullopt;
}

bool Parser::Names(PrintNode& node) {
  do {
    if (!Take("{")) return false;
    knows_all_names_ = true;
    const std::optional<uint64_t> value = Constant();
    if (!value || !Take(",")) return false;
    if (token_.kind == Token::Kind::kString) {
      std::string name = Strings();
      if (knows_all_names_) node.names.emplace_back(*value, std::move(name));
    } else if (!Constant()) {  // "{ 0, ((void *)0) }" ends some lists
      return false;
    }
    if (!Take("}")) return false;
  } while (Take(","));
  return true;
}

// What only a record can tell.
bool ReadsField(const PrintNode& node) {
  return node.kind == Kind::kField || node.kind == Kind::kText || node.kind == Kind::kArray ||
         node.kind == Kind::kArrayLength;
}

// A number's expression, which is not kept.
std::optional<uint64_t> Parser::Constant() {
  const size_t before = out_.nodes.size();
  const NodeIndex root = Expression();
  if (!root) return std::nullopt;
  const auto first = out_.nodes.begin() + static_cast<std::ptrdiff_t>(before);
  if (std::any_of(first, out_.nodes.end(), ReadsField)) return std::nullopt;
  const uint64_t value = ConstantValue(out_, *root);
  out_.nodes.resize(before);
  return value;
}

}  // namespace

std::optional<PrintFormat> PrintFormat::Parse(std::string_view text,
                                              const std::vector<TraceField>& fields,
                                              unsigned long_size) {
  return Parser(text, fields, long_size).Run();
}

}  // namespace stackreel::perfdata
