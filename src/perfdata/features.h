// The feature sections: what is known of the machine, the command and the binaries.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "base/error.h"
#include "perfdata/attr.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

enum class Feature : uint32_t {
  kTracingData = 1,
  kBuildId = 2,
  kHostname = 3,
  kOsRelease = 4,
  kVersion = 5,
  kArch = 6,
  kNrCpus = 7,
  kCpuDesc = 8,
  kCpuId = 9,
  kTotalMem = 10,
  kCmdline = 11,
  kEventDesc = 12,
  kCpuTopology = 13,
  kNumaTopology = 14,
  kBranchStack = 15,
  kPmuMappings = 16,
  kGroupDesc = 17,
  kAuxtrace = 18,
  kStat = 19,
  kCache = 20,
  kSampleTime = 21,
  kMemTopology = 22,
  kClockid = 23,
  kDirFormat = 24,
  kBpfProgInfo = 25,
  kBpfBtf = 26,
  kCompressed = 27,
  kCpuPmuCaps = 28,
  kClockData = 29,
  kHybridTopology = 30,
  kPmuCaps = 31,
  kCpuDomainInfo = 32,
  kEMachine = 33,
  kClnSize = 34,
  kStackreelPacMask = 200,     // ours: u32 version, u32 source, u64 keys, insn_mask, data_mask
  kStackreelStackEnds = 201,   // ours: how the stacks that were unwound at record ended
  kStackreelFunctions = 202,   // ours: names of functions whose files the reader does not have
  kStackreelAnonymized = 203,  // ours: u32 version, u32 how much was hidden; see AnonymizedMark
};
inline constexpr uint32_t kFeatureBits = 256;
// A feature amid the data, in an EVENT_UPDATE record of a kind that perf does not know and with id
// 0, which perf 6.1 passes over in files and pipes:
//   u64 type 60001   u64 id 0   u32 version 1   u32 feature   u64 size   bytes[size]   zeros to 8
// It counts where there is no list of features behind the data: in pipes, and in recordings whose
// recorder was killed. The last one of a feature counts.
inline constexpr uint64_t kUpdateFeature = 60001;
std::string FeatureName(uint32_t feature);

// The features that the rest of Stackreel uses, decoded; all of them raw besides, so that what is
// shown and what is copied never depends on what we understand.
struct Features {
  std::map<uint32_t, std::vector<uint8_t>> raw;  // in the file's byte order

  std::string hostname, os_release, version, arch, cpu_desc, cpu_id;
  std::optional<std::pair<uint32_t, uint32_t>> nr_cpus;  // online, available
  std::optional<uint64_t> total_mem_kb;
  std::vector<std::string> cmdline;
  std::vector<Event> event_desc;
  std::vector<HeaderBuildId> build_ids;
  std::vector<uint16_t> build_id_misc;  // beside build_ids: the misc of each
  std::optional<std::pair<uint64_t, uint64_t>> sample_time;
  std::map<uint32_t, std::string> pmu_names;  // type → name
  struct Compressed {
    uint32_t version = 0, type = 0, level = 0, ratio = 0, mmap_len = 0;
  };
  std::optional<Compressed> compressed;
  std::optional<uint64_t> clockid_res_ns;
  // How user stacks ended that were unwound while recording: name of the end → samples. Only such
  // recordings have it; a complete stack ended at its "root".
  std::map<std::string, uint64_t> stack_ends;
  bool anonymized = false;  // what is said of it goes to nobody, as a server of debug files
  std::map<uint64_t, std::string> tracepoint_names;  // config → "sched:sched_switch"
};

// Decodes one feature's bytes into `features` (raw included). A bad one stays raw and is counted
// "perfdata.bad_feature".
void DecodeFeature(uint32_t feature, ByteView bytes, Endian endian, Features& features,
                   Counters& counters);
// The feature in an EVENT_UPDATE of kUpdateFeature, and its bytes, which point into the record;
// nothing if it is none that can be read.
std::optional<std::pair<uint32_t, ByteView>> FeatureOf(const EventUpdate& update, Endian endian);
EventUpdate MakeFeatureUpdate(uint32_t feature, ByteView bytes, Endian endian);

// Text lines of one feature, known or not; the first names it, those that belong to it are
// indented. `nr_cpus`: NRCPUS's available, for CPU_TOPOLOGY; 0 if not known.
std::vector<std::string> DescribeFeature(uint32_t feature, ByteView bytes, Endian endian,
                                         uint32_t nr_cpus);
// The same as `report --header` shows them: every feature there is, then the names of those of
// perf's that are not.
std::vector<std::string> DescribeFeatures(const Features& features, Endian endian);

// "2026-11-30 03:38:29": seconds since 1970 as a date, UTC.
std::string DateText(uint64_t seconds);

// Encoders for what a recorder writes.
std::vector<uint8_t> EncodeString(const std::string& text, Endian endian);
std::vector<uint8_t> EncodeStringList(const std::vector<std::string>& list, Endian endian);
std::vector<uint8_t> EncodeEventDesc(const std::vector<Event>& events, Endian endian);
// kStackreelPacMask, as the recorder's CPU says for all processes.
std::vector<uint8_t> EncodePacMask(uint64_t enabled_keys, uint64_t insn_mask, uint64_t data_mask,
                                   Endian endian);
std::vector<uint8_t> EncodeStackEnds(const std::map<std::string, uint64_t>& ends, Endian endian);
Result<std::vector<uint8_t>> EncodeBuildIds(const std::vector<HeaderBuildId>& ids,
                                            const std::vector<uint16_t>& misc, Endian endian);

}  // namespace stackreel::perfdata
