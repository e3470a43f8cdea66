// Records as a recording has them, and a session that they are applied to, for tests.
#ifndef STACKREEL_SESSION_FAKE_RECORDING_H_
#define STACKREEL_SESSION_FAKE_RECORDING_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "perfdata/record.h"
#include "session/session.h"

namespace stackreel::session {

inline constexpr uint16_t kUser = 2;
inline constexpr uint16_t kKernel = 1;
inline constexpr uint32_t kProtRx = 5;
inline constexpr uint32_t kProtRw = 3;

inline perfdata::Record MakeMmap2(uint32_t pid, uint64_t addr, uint64_t len, uint64_t pgoff,
                                  std::string name, uint32_t prot = kProtRx) {
  perfdata::Mmap2 mmap;
  mmap.pid = mmap.tid = pid;
  mmap.addr = addr;
  mmap.len = len;
  mmap.pgoff = pgoff;
  mmap.prot = prot;
  mmap.flags = 2;
  mmap.filename = std::move(name);
  return {static_cast<uint32_t>(perfdata::RecordType::kMmap2), kUser, mmap, {}};
}

inline perfdata::Record MakeMmap(uint32_t pid, uint64_t addr, uint64_t len, uint64_t pgoff,
                                 std::string name, uint16_t misc) {
  return {static_cast<uint32_t>(perfdata::RecordType::kMmap),
          misc,
          perfdata::Mmap{pid, pid, addr, len, pgoff, std::move(name)},
          {}};
}

inline perfdata::Record MakeComm(uint32_t pid, uint32_t tid, std::string comm, bool exec = false) {
  const auto misc = static_cast<uint16_t>(exec ? perfdata::kMiscCommExec : 0);
  return {static_cast<uint32_t>(perfdata::RecordType::kComm),
          misc,
          perfdata::Comm{pid, tid, std::move(comm)},
          {}};
}

inline perfdata::Record MakeTask(perfdata::RecordType type, uint32_t pid, uint32_t ppid,
                                 uint32_t tid, uint32_t ptid, uint16_t misc = 0) {
  return {static_cast<uint32_t>(type), misc, perfdata::Task{pid, ppid, tid, ptid, 0}, {}};
}

class SessionTest : public testing::Test {
 protected:
  std::string Where(uint32_t pid, uint64_t avma) {
    return Where(*session_.ProcessOf(pid).maps, avma);
  }
  std::string Where(const AddressSpace& maps, uint64_t avma) {
    const Location location = session_.Find(maps, Avma(avma));
    return location.module == kNoModule ? "" : session_.modules()[location.module].path();
  }
  std::string CommOf(uint32_t pid, uint32_t tid) {
    return session_.CommOf(session_.ThreadOf(pid, tid));
  }

  perfdata::Features features_;
  Counters counters_;
  Session session_{features_, Endian::kLittle, counters_};
};

}  // namespace stackreel::session

#endif  // STACKREEL_SESSION_FAKE_RECORDING_H_
