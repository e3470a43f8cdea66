// For tests: the symbol table of a file made in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elf/image.h"
#include "symbolize/symbol_table.h"

namespace stackreel::symbolize {

using Bytes = std::vector<uint8_t>;

inline std::string NameAt(const SymbolTable& table, uint64_t svma) {
  const std::optional<SymbolRange> symbol = table.Find(Svma(svma));
  return symbol ? std::string(symbol->name) : "";
}

// A table and the file that its names are in.
struct FileTable {
  Bytes file;
  SymbolTable table;
};
inline FileTable TableOfFile(Bytes file) {
  FileTable out;
  out.file = std::move(file);
  const auto image = elf::Image::Parse(out.file);
  EXPECT_TRUE(image);
  out.table = SymbolTable::FromElf(&*image, nullptr);
  return out;
}
inline std::string NameAt(const FileTable& file, uint64_t svma) { return NameAt(file.table, svma); }

}  // namespace stackreel::symbolize
