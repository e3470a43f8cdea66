// BPF programs that were loaded before the recording began.
#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <set>

#include "record/records.h"
#include "record/synthesize.h"

namespace stackreel::record {

namespace {

using perfdata::RecordType;

constexpr uint64_t kPage = 4096;

// As the kernel makes it (bpf_get_prog_name) of a program without a name in kallsyms.
std::string MakeName(const os::BpfProgram& program) {
  std::string name = "bpf_prog_";
  for (const uint8_t byte : program.tag) name += fmt::format("{:02x}", byte);
  if (!program.name.empty()) name += "_" + program.name;
  return name;
}

Status EmitSymbol(uint64_t address, uint64_t size, std::string name, const EmitRecord& emit) {
  return emit(MakeRecord(RecordType::kKsymbol, 0,
                         perfdata::Ksymbol{.addr = address,
                                           .len = static_cast<uint32_t>(size),
                                           .ksym_type = PERF_RECORD_KSYMBOL_TYPE_BPF,
                                           .flags = 0,
                                           .name = std::move(name)}));
}

}  // namespace

Status SynthesizeBpf(const KernelImage& kernel, const std::vector<os::BpfProgram>& programs,
                     const EmitRecord& emit) {
  const auto name_at = [&](uint64_t address) -> const std::string* {
    const auto found =
        std::ranges::lower_bound(kernel.bpf_symbols, address, {}, &KernelSymbol::address);
    const bool is_there = found != kernel.bpf_symbols.end() && found->address == address;
    return is_there ? &found->name : nullptr;
  };
  std::set<uint64_t> told;
  for (const os::BpfProgram& program : programs) {
    for (const os::BpfProgram::Code& code : program.code) {
      const std::string* const name = name_at(code.address);
      TRY(EmitSymbol(code.address, code.size, name != nullptr ? *name : MakeName(program), emit));
      told.insert(code.address);
    }
    perfdata::BpfEvent event;
    event.type = PERF_BPF_EVENT_PROG_LOAD;
    event.id = program.id;
    event.tag = program.tag;
    TRY(emit(MakeRecord(RecordType::kBpfEvent, 0, event)));
  }
  // Trampolines and dispatchers: nobody tells how long they are. None crosses a page's end.
  for (size_t i = 0; i < kernel.bpf_symbols.size(); ++i) {
    const KernelSymbol& symbol = kernel.bpf_symbols[i];
    if (told.contains(symbol.address) || symbol.name.starts_with("bpf_prog_")) continue;
    uint64_t end = (symbol.address | (kPage - 1)) + 1;
    if (i + 1 < kernel.bpf_symbols.size() && kernel.bpf_symbols[i + 1].address > symbol.address) {
      end = std::min(end, kernel.bpf_symbols[i + 1].address);
    }
    TRY(EmitSymbol(symbol.address, end - symbol.address, symbol.name, emit));
  }
  return {};
}

}  // namespace stackreel::record
