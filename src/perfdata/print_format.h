// "print fmt" of a tracepoint: a printf format and its arguments, which are C expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stackreel::perfdata {

struct TraceField;

// One node of an argument's expression. Children come before their parent in PrintFormat::nodes.
struct PrintNode {
  enum class Kind : uint8_t {
    kNumber,       // value
    kString,       // text
    kField,        // REC->field
    kElement,      // child 0 is an array field, child 1 the index
    kUnary,        // op, child 0
    kBinary,       // op, children
    kChoice,       // child 0 ? child 1 : child 2
    kCast,         // to value bytes, signed if op is '-'
    kFlags,        // __print_flags(child 0, text, names)
    kSymbolic,     // __print_symbolic(child 0, names)
    kText,         // __get_str(field)
    kArray,        // __get_dynamic_array(field)
    kArrayLength,  // __get_dynamic_array_len(field)
    kHex,
    kHexString,  // __print_hex(child 0, child 1)
    kNumbers,    // __print_array(child 0, child 1, child 2)
  };
  Kind kind = Kind::kNumber;
  // '<', '>', '=' … as written; for two characters the second is op2: "<<", "<=", "&&".
  char op = 0, op2 = 0;
  uint64_t value = 0;
  uint32_t field = 0;
  uint32_t children[3] = {0, 0, 0};
  uint32_t depth = 1;  // of the tree below
  std::string text;
  std::vector<std::pair<uint64_t, std::string>> names;
};

struct PrintFormat {
  std::string format;
  std::vector<PrintNode> nodes;
  std::vector<uint32_t> arguments;  // roots in nodes

  // Parses what follows "print fmt: ". Nothing if it is not understood.
  static std::optional<PrintFormat> Parse(std::string_view text,
                                          const std::vector<TraceField>& fields,
                                          unsigned long_size);
};

}  // namespace stackreel::perfdata
