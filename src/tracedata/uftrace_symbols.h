// What addresses of a uftrace recording are: its sessions, their modules and symbols.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "tracedata/trace_source.h"
#include "tracedata/uftrace_reader.h"
#include "tracedata/uftrace_text.h"

namespace stackreel::tracedata {

class UftraceSymbols {
 public:
  // Modules and functions are added to `tables`. All must outlive it.
  UftraceSymbols(TraceFolder& folder, const UftraceInfo& info, TraceTables& tables,
                 Counters& counters)
      : folder_(folder), info_(info), tables_(tables), counters_(counters) {}

  // Reads the map of a session of `pid`; gives its number, the same for the same sid.
  size_t AddSession(const std::string& sid, uint32_t pid = 0);
  // A library that a session has loaded.
  void AddLibrary(const std::string& sid, uint64_t base, const std::string& path);

  struct Function {
    uint32_t row = 0;
    const UftraceSpecs* specs = nullptr;  // null: none are known
  };
  // The function at an address of a session; one named "<address>" if there is no symbol.
  const Function& At(size_t session, uint64_t address);

 private:
  struct Module {
    std::vector<UftraceSymbol> symbols;
    UftraceDebug debug;                            // by address in the module
    std::map<std::string, uint32_t> enumerations;  // ids, by name
    std::unordered_map<size_t, uint32_t> rows;     // of functions, by symbol
  };
  struct Mapping {
    uint64_t start = 0, end = 0;
    uint32_t module = 0;  // a row
  };
  struct Session {
    std::vector<Mapping> mappings;  // by start
    std::unordered_map<uint64_t, Function> functions;
  };

  uint32_t AddModule(const std::string& path, const BuildId& build_id);
  std::string ReadFile(const std::string& name);
  Function Find(const Session& session, uint64_t address);
  Function MakeFunction(uint32_t module_row, size_t symbol, uint64_t address);
  const UftraceSpecs* SpecsOf(const Module& module, const std::string& name, uint64_t address);

  TraceFolder& folder_;
  const UftraceInfo& info_;
  TraceTables& tables_;
  Counters& counters_;
  std::map<std::string, size_t> session_numbers_;
  std::vector<Session> sessions_;
  std::map<std::string, uint32_t> module_rows_;  // by path
  std::vector<Module> modules_;                  // by row
  std::deque<UftraceSpecs> specs_;
};

}  // namespace stackreel::tracedata
