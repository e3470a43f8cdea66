// What stands for names and numbers from level kIdentity on. A text keeps what is public in it, so
// that a stranger still sees libraries, kernel threads and events; all else becomes pseudonyms:
//
//   /home/ann/shop/bin/server   →  /home/d_hkvmzqtwrp/d_njvtwzmkqg/bin/server   (kIdentity)
//                               →  /home/d_hkvmzqtwrp/d_njvtwzmkqg/bin/m_ktvhgwnqzr   (kSymbols)
//   /usr/lib/libc.so.6          →  /usr/lib/libc.so.6
//
// Equal parts have equal pseudonyms, in all recordings that are anonymised with the same key.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "anonymize/collect.h"
#include "anonymize/key.h"
#include "anonymize/level.h"
#include "anonymize/public_names.h"
#include "base/build_id.h"
#include "perfdata/schema.h"

namespace stackreel::anonymize {

// "6.1" of "6.1.0-13-amd64": what is public of the kernel's or a program's release.
std::string Release(std::string_view text);

// Words that name the machine or its users, and are looked for in all texts.
std::set<std::string> IdentityWords(const Collected& collected);

// Not for use by several threads at once: it remembers the numbers it gave.
class Pseudonyms {
 public:
  // `publics` must outlive it.
  Pseudonyms(const Key& key, Level level, const PublicNames& publics, const Collected& collected);

  // Numbers. What is no number of a process (0, and -1 of any width), no time (0, -1) and no file
  // (0) stays.
  uint64_t Pid(uint64_t pid);
  // By class: kTime, kWallTime. Order and differences stay within a clock.
  [[nodiscard]] uint64_t Time(perfdata::Sensitivity clock, uint64_t time) const;
  [[nodiscard]] uint64_t FileId(uint64_t id) const;

  // A text of a class. A kFunction is of the module whose kPath came last.
  std::string Text(perfdata::Sensitivity sensitivity, const std::string& text);
  // The words of a command line: of the recorder's own options those stay that tell nothing.
  std::vector<std::string> Arguments(const std::vector<std::string>& words);
  // Those of public modules stay.
  [[nodiscard]] BuildId Build(const BuildId& id) const;
  void Tag(std::span<uint8_t> tag) const;
  // The name of an event, with the numbers and words that perf puts together.
  [[nodiscard]] std::string EventName(std::string_view name) const;
  std::string Path(std::string_view path);
  [[nodiscard]] bool IsPublic(std::string_view path) const;

 private:
  [[nodiscard]] std::string Comm(std::string_view comm) const;
  [[nodiscard]] std::string Function(std::string_view name, bool is_public) const;
  [[nodiscard]] std::string Symbol(std::string_view name) const;
  [[nodiscard]] std::string CgroupPath(std::string_view path) const;
  [[nodiscard]] std::string EventWord(std::string_view word, char before) const;
  std::string Bracketed(std::string_view name);
  std::string FilePath(std::string_view path);
  std::string Folder(std::string_view name, bool of_system, bool hide_module) const;
  std::string File(std::string_view name, bool of_system, bool hide_module);
  // "perf-12.map", "jit-12.dump", "jitted-12-3.so", with the process's new number; "" if it is
  // none.
  std::string JitFile(std::string_view name);
  [[nodiscard]] std::string WithoutIdentity(std::string_view text) const;
  [[nodiscard]] std::string NameOf(std::string_view prefix, std::string_view text) const;
  std::string PidText(std::string_view digits);
  void NumberDevices();

  Level level_;
  const PublicNames& publics_;
  KeyedHash names_, numbers_, files_, builds_;
  std::vector<uint16_t> devices_;  // for numbers of 12 bits: that of 0 is 0
  uint64_t time_shift_ = 0, wall_shift_ = 0;
  std::set<std::string> identity_;
  std::set<std::string> pmus_;
  std::set<BuildId> public_builds_;
  bool module_is_public_ = false;
  std::unordered_map<uint32_t, uint32_t> pids_;
};

}  // namespace stackreel::anonymize
