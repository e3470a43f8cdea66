// Prints every CFI row of an ELF file in a plain form, for compare_cfi.py:
//   F START END            one function's information
//   R START CFA N=RULE …   a row; N is a DWARF register number. Rules as readelf -wF writes them:
//                          u, s, c-16 (saved there), v+8 (is that), rN (in register), exp, vexp
//   E TEXT                 what was wrong: bad instructions; a look-up that does not lead here
#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <string>

#include "dwarf/cfi.h"
#include "elf/image.h"
#include "os/file.h"
#include "unwind/unwind.h"

namespace stackreel {
namespace {

using dwarf::RuleKind;

std::string RuleText(const dwarf::RegisterRule& rule) {
  switch (rule.kind) {
    case RuleKind::kUndefined:
      return "u";
    case RuleKind::kSameValue:
      return rule.stated ? "s" : "u";
    case RuleKind::kOffset:
      return fmt::format("c{:+}", rule.offset);
    case RuleKind::kValOffset:
      return fmt::format("v{:+}", rule.offset);
    case RuleKind::kRegister:
      return fmt::format("r{}", rule.other);
    case RuleKind::kExpression:
      return "exp";
    case RuleKind::kValExpression:
      return "vexp";
  }
  return "?";
}

void PrintRow(const dwarf::Row& row, std::string& out) {
  auto at = std::back_inserter(out);
  if (row.cfa.is_expression) {
    fmt::format_to(at, "R {:x} exp", row.start.value);
  } else {
    fmt::format_to(at, "R {:x} {}{:+}", row.start.value, row.cfa.reg, row.cfa.offset);
  }
  for (unsigned reg = 0; reg < dwarf::kMaxRegisters; ++reg) {
    const dwarf::RegisterRule& rule = row.registers[reg];
    if (rule.stated) fmt::format_to(at, " {}={}", reg, RuleText(rule));
  }
  out += '\n';
}

int Run(const char* path) {
  const auto file = os::MapFile(path);
  if (!file) {
    fmt::print(stderr, "{}\n", file.error().ToString());
    return 1;
  }
  const auto image = elf::Image::Parse((*file)->bytes());
  if (!image) {
    fmt::print(stderr, "{}: {}\n", path, image.error().ToString());
    return 1;
  }
  const auto module = unwind::UnwindModule::Make(&*image, nullptr);
  std::string out;
  for (const dwarf::Fde& fde : module->frames().AllFdes()) {
    fmt::format_to(std::back_inserter(out), "F {:x} {:x}\n", fde.start.value, fde.end.value);
    for (const Svma svma : {fde.start, fde.end - 1}) {
      const auto found = module->frames().FindFde(svma);
      const bool same = found && found->start == fde.start && found->end == fde.end;
      if (!same) fmt::format_to(std::back_inserter(out), "E not found at {:x}\n", svma.value);
    }
    dwarf::RowCursor rows = module->frames().Rows(fde);
    while (true) {
      const auto more = rows.Next();
      if (!more) out += "E " + more.error().ToString() + '\n';
      if (!more || !*more) break;
      PrintRow(rows.row(), out);
    }
    if (out.size() > (1 << 20)) {
      std::fwrite(out.data(), 1, out.size(), stdout);
      out.clear();
    }
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: cfi_rows FILE\n", stderr);
    return 2;
  }
  return stackreel::Run(argv[1]);
}
