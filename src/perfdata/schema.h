// What every field of every record, sample, attr and feature is, and how private it is.
//
// The layout tables (*_layout.h) are constexpr and name each member of each structure once, with
// its wire form, its name and its Sensitivity. Decoding, encoding, dumping and anonymising all walk
// these tables. A field cannot be listed without a class (no constructor takes none), and a member
// that is not listed breaks a static_assert: a field added tomorrow cannot leak by being forgotten.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stackreel::perfdata {

// What a field's value gives away. "Address" is one of the recorded machine; whether it is a user's
// or the kernel's follows from the record's cpumode, or from the marker before it in a callchain.
enum class Sensitivity : uint8_t {
  kNone,             // counts, sizes, kinds, flags, event ids, CPU numbers
  kCodeAddress,      // instruction pointers, callchains, branches
  kDataAddress,      // what the program touched
  kMapAddress,       // start of a mapping
  kMapOffset,        // pgoff: a file offset, but an address for anonymous and kernel mappings
  kKernelAddress,    // always the kernel's: KSYMBOL, TEXT_POKE
  kPhysicalAddress,  // frame of memory
  kEventConfig,      // of an attr: may hold the address of a breakpoint or probe
  kRegisters,        // any register may hold an address or a datum
  kPayload,          // bytes that may hold anything: stacks, raw tracepoint data, AUX, code
  kPid,              // process and thread numbers
  kComm,             // names of threads
  kSymbol,           // of functions and programs that the kernel made
  kFunction,         // of functions of the module whose path comes before
  kEventName,        // of events and their groups, and their units
  kPath,             // of files
  kCgroupPath,       // of cgroups
  kCommandLine,      // arguments of the recorder
  kHostName,         // of the machine
  kRelease,          // of the kernel and of the recorder
  kMachine,          // what the machine is: its CPU, how much memory it has
  kFileId,           // device, inode, generation, namespace, cgroup numbers
  kBuildId,          // identity of a binary
  kTime,             // timestamps of the events' clock
  kWallTime,         // of the wall clock
  kCycles,           // of the CPU's cycle counter, and what ties it to time
};
std::string_view SensitivityName(Sensitivity sensitivity);

// How a value is shown. Process numbers are shown signed, bytes always in hex.
enum class Display : uint8_t {
  kDecimal,
  kHex,
  kReal,        // the bits of a double
  kSampleType,  // hex, and the names of its bits
  kReadFormat,
  kAttrFlags,
};

// Everything about a field but where it is. Only made at compile time, never without a class.
struct FieldInfo {
  std::string_view name;
  Sensitivity sensitivity;
  Display display;

  consteval FieldInfo(std::string_view field_name, Sensitivity field_sensitivity,
                      Display field_display = Display::kDecimal)
      : name(field_name), sensitivity(field_sensitivity), display(field_display) {}
};

// One field of one structure: "MMAP2", "filename", kPath.
struct SchemaRow {
  std::string structure;
  FieldInfo field;
};
// Every field of every record, of SAMPLE, of the trailer ("sample_id") and of every feature
// ("feature HOSTNAME"), in wire order.
std::vector<SchemaRow> SchemaRows();

}  // namespace stackreel::perfdata
