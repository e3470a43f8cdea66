// Code whose return addresses its own runtime reads from the stack: what compilers of Go, OCaml and
// Haskell make, and what compiled Java calls.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "elf/image.h"

namespace stackreel::tracer {

// [start, end) of a module. A recorded function has another return address on the stack meanwhile,
// so that none of it can be recorded.
struct ForeignCode {
  Svma start, end;
  const char* why;
};

// Finds it by what compilers leave in a file. C code that is linked with it (of cgo, of a runtime)
// is told apart by symbols; where these are gone, all of the module counts.
class ForeignCodeFinder {
 public:
  explicit ForeignCodeFinder(const elf::Image& image);
  // The name must stay until Take.
  void OnSymbol(const elf::Symbol& symbol);
  // Ascending, and apart from each other.
  [[nodiscard]] std::vector<ForeignCode> Take() const;

 private:
  struct Extent {
    std::optional<Svma> start, end;
  };
  bool has_go_ = false, has_haskell_ = false, has_hotspot_ = false;
  Extent go_;
  std::map<std::string_view, Extent> ocaml_;  // by compilation unit
  std::vector<Svma> haskell_;                 // functions by their names, if it is
};

}  // namespace stackreel::tracer
