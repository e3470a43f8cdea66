// (module, svma) → functions, files and lines; each pair looked up once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/counters.h"
#include "base/interner.h"
#include "base/io.h"
#include "session/module.h"

namespace stackreel::symbolize {

// Files found for one module. All may be null: then addresses stay unresolved, and `why` says why.
struct ModuleFiles {
  FileImagePtr main;      // the binary itself (or the vDSO's bytes)
  FileImagePtr debug;     // its separate debug file
  FileImagePtr kallsyms;  // text, the lines of others too; for kernels and their modules
  FileImagePtr perf_map;  // text, for JIT code
  std::function<FileImagePtr(std::string_view, ByteView)> alt_file;
  std::function<FileImagePtr(std::string_view, std::string_view)> dwo_file;
  std::string why;
};

// Who knows where files are (symfiles/, or a test). One call a module.
class ModuleFileProvider {
 public:
  virtual ~ModuleFileProvider() = default;
  virtual ModuleFiles FilesOf(const session::Module& module) = 0;
};

// The name kallsyms has in brackets: "nf_conntrack" for "[nf-conntrack]" and for
// "/lib/modules/…/nf-conntrack.ko.xz"; "bpf" for BPF programs. Empty for the kernel proper.
std::string KallsymsModule(const session::Module& module);

using FunctionId = StringInterner::Id;

// A function at an address; several when calls were inlined, innermost first.
struct SymbolizedFrame {
  StringInterner::Id function = 0;  // demangled, without parameters; 0 (""): not resolved
  StringInterner::Id mangled = 0;   // as in the symbol table
  StringInterner::Id file = 0;
  uint32_t line = 0;
  uint64_t offset = 0;  // svma - start of the outermost one's symbol
  bool inlined = false;
};

struct SymbolizeOptions {
  bool demangle = true;
  bool inlines = false;  // functions inlined, from DWARF
  bool lines = false;    // file and line, from DWARF
};

// For use by one thread at a time; ids and views live as long as it.
class Symbolizer {
 public:
  Symbolizer(ModuleFileProvider& provider, const SymbolizeOptions& options, Counters& counters);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // The frames at a svma of a module, at least one. `lookup` is the address minus one for return
  // addresses. For kernels, their modules and JIT memory svma is avma, as kallsyms and perf maps
  // have it. The view lives as long as the symbolizer.
  std::span<const SymbolizedFrame> Find(session::ModuleId id, const session::Module& module,
                                        Svma lookup);
  // The same if it was found before, else empty. By any number of threads while none calls another
  // member that is not const.
  [[nodiscard]] std::span<const SymbolizedFrame> FindKnown(session::ModuleId id, Svma lookup) const;
  [[nodiscard]] std::string_view Text(StringInterner::Id id) const;
  // The files of a module, asked from the provider once.
  const ModuleFiles& FilesOf(session::ModuleId id, const session::Module& module);
  // Why a module has no symbols; empty if it has.
  [[nodiscard]] std::string_view WhyUnresolved(session::ModuleId id) const;
  StringInterner& strings();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stackreel::symbolize
