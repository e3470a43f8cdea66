#include "analyze/unwind_input.h"

#include "analyze/analysis.h"

namespace stackreel::analyze {

std::optional<unwind::UnwindInput> UnwindInputOf(const perfdata::Sample& sample, unwind::Arch arch,
                                                 Endian endian) {
  const std::optional<unwind::Registers> registers = RegistersOf(sample.regs_user);
  if (!registers) return std::nullopt;
  std::optional<unwind::UnwindInput> input(std::in_place);
  input->arch = arch;
  input->registers = *registers;
  const unsigned sp = unwind::StackPointerOf(arch);
  const uint64_t start = registers->Has(sp) ? registers->values[sp] : 0;
  input->stack = unwind::StackView(Avma(start), sample.stack_user, endian);
  input->stack_was_cut = sample.stack_user.size() == sample.stack_user_size;
  return input;
}

}  // namespace stackreel::analyze
