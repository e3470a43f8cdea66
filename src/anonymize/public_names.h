// Names that give nothing away: of modules, threads, events and options that anybody's machine has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stackreel::anonymize {

// Whether `text` is of the form `pattern`, in which * stands for any characters, also /, and ? for
// one.
bool MatchesPattern(std::string_view pattern, std::string_view text);

// Digits only, and at least one.
bool IsNumber(std::string_view text);
inline constexpr std::string_view kDigits = "0123456789";
// What the kernel writes behind the path of a file that is no longer there.
inline constexpr std::string_view kDeleted = " (deleted)";
std::string_view WithoutDeleted(std::string_view path);

// One pattern a line; empty lines and what follows a # are passed over.
std::vector<std::string> ParsePatterns(std::string_view text);

// What keeps its name, besides what is listed here already.
struct PublicNames {
  std::vector<std::string> modules;  // patterns: of a path if there is a / in it, else of a file
  std::vector<std::string> comms;
};

// Of the name in a mapping's record: "/usr/lib/libc.so.6", "[kernel.kallsyms]_text", "[ext4]".
// Where the recorder wrote " (deleted)" behind it, that is to be cut off before: WithoutDeleted.
bool IsPublicModule(std::string_view path, const PublicNames& more);
bool IsPublicComm(std::string_view comm, const PublicNames& more);
// A symbol that the kernel makes itself at run time, as "ftrace_trampoline".
bool IsPublicSymbol(std::string_view symbol);
// A folder of every system: "bin", "lib64", "src".
bool IsPublicFolder(std::string_view name);
// Whether what lies below these two folders of the root (the second is "" if the first has the
// file) is of the distribution, and its folders are every such system's.
bool IsOfSystem(std::string_view first, std::string_view second);
// Whether a file of this name may be code: "server", "libx.so.3", "python3.11", not "list.txt".
bool IsNameOfCode(std::string_view name);
// What the kernel and perf name memory that has no file, in brackets: "heap", "vdso".
bool IsPublicMemory(std::string_view name);
// The same, whole: "[heap]", "//anon".
bool IsNameOfMemory(std::string_view path);
// A part of the path of a cgroup that systemd and containers have everywhere: "system.slice".
bool IsPublicCgroup(std::string_view name);
// A word of event names as perf spells them, "cycles", "L1-dcache-loads", "umask"; a system of
// tracepoints of the kernel.
bool IsPublicEventWord(std::string_view word);
bool IsPublicTracepointSystem(std::string_view system);
// A command of perf or Stackreel, or an option with its dashes.
bool IsPublicArgument(std::string_view word);
// The maker of a CPU that is named in `text`; "" if none is.
std::string CpuMakerIn(std::string_view text);

}  // namespace stackreel::anonymize
