// For tests and seeds of fuzzers: every kind of record, every field set.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "perfdata/record.h"

namespace stackreel::perfdata::one_of_each {

inline Record Make(RecordType type, RecordBody body, uint16_t misc = 0) {
  return Record{static_cast<uint32_t>(type), misc, std::move(body), std::nullopt};
}

inline const BuildId& SomeBuildId() {
  static const BuildId kId = *BuildId::FromHex("00112233445566778899aabbccddeeff01020304");
  return kId;
}

inline std::vector<Record> KernelRecords() {
  using enum RecordType;
  return {
      Make(kMmap, Mmap{1, 2, 0x400000, 0x1000, 3, "/bin/cat"}),
      Make(kMmap2, Mmap2{1, 2, 0x7f0000000000, 0x1000, 0, 8, 1, 99, 7, {}, 5, 2, "/lib/libc.so"}),
      Make(kMmap2,
           Mmap2{1, 2, 0x7f0000000000, 0x1000, 0, 0, 0, 0, 0, SomeBuildId(), 5, 2, "/lib/libc.so"},
           kMiscMmapBuildId),
      Make(kMmap2, Mmap2{1, 2, 3, 4, 0, 0, 0, 0, 0, *BuildId::FromHex("aabbccdd"), 5, 2, "//anon"},
           kMiscMmapBuildId),
      Make(kLost, Lost{11, 12}),
      Make(kComm, Comm{1, 2, "seven77"}, kMiscCommExec),
      Make(kComm, Comm{1, 2, "eight888"}),
      Make(kExit, Task{1, 2, 3, 4, 5}),
      Make(kFork, Task{1, 2, 3, 4, 5}),
      Make(kThrottle, Throttle{1, 2, 3}),
      Make(kUnthrottle, Throttle{1, 2, 3}),
      Make(kRead, Read{1, 2, ReadValues{0, 0, {ReadValue{9, 8, 7}}}}),
      Make(kAux, Aux{1, 2, 3}),
      Make(kItraceStart, ItraceStart{1, 2}),
      Make(kLostSamples, LostSamples{3}),
      Make(kSwitch, Switch{}, kMiscSwitchOut),
      Make(kSwitchCpuWide, SwitchCpuWide{1, 2}),
      Make(kNamespaces, Namespaces{1, 2, {{3, 4}, {5, 6}}}),
      Make(kKsymbol, Ksymbol{0xffffffffc0000000, 0x40, 1, 1, "bpf_prog_1"}),
      Make(kBpfEvent, BpfEvent{1, 0, 5, {1, 2, 3, 4, 5, 6, 7, 8}}),
      Make(kCgroup, Cgroup{5, "/system.slice"}),
      Make(kTextPoke, TextPoke{0xffffffff81000000, {1, 2, 3, 4, 5}, {6, 7}}),
      Make(kAuxOutputHwId, AuxOutputHwId{0x1234}),
      Make(kCallchainDeferred, CallchainDeferred{77, {kContextUser, 0x401000, 0x402000}}),
      Make(kCallchainDeferred, CallchainDeferred{0, {kContextUser, 0x401000}, false}),
      Make(kCallchainDeferred, CallchainDeferred{0, {}, false}),
      Make(kPtrAuth, PtrAuth{1, 2, 0x1f, 0x007f000000000000, 0x007f800000000000}),
  };
}

inline std::vector<Record> UserRecords() {
  using enum RecordType;
  Attr attr;
  attr.size = 112;
  attr.config = 3;
  attr.sample_max_stack = 127;
  return {
      Make(kHeaderAttr, HeaderAttr{attr, {11, 12, 13}}),
      Make(kHeaderEventType, HeaderEventType{3, "cycles"}),
      Make(kHeaderTracingData, HeaderTracingData{{1, 2, 3, 4, 5}}),
      Make(kHeaderBuildId, HeaderBuildId{-1, SomeBuildId(), "[kernel.kallsyms]"}, 1),
      Make(kHeaderBuildId, HeaderBuildId{7, *BuildId::FromHex("aabb"), "/bin/cat"},
           kMiscBuildIdSize),
      Make(kFinishedRound, FinishedRound{}),
      Make(kIdIndex, IdIndex{false, {{1, 2, 3, 4, 0, 0}, {5, 6, 7, 8, 0, 0}}}),
      Make(kIdIndex, IdIndex{true, {{1, 2, 3, 4, 50, 60}, {5, 6, 7, 8, 70, 80}}}),
      Make(kAuxtraceInfo, AuxtraceInfo{1, 0, {5, 6, 7}}),
      Make(kAuxtrace, Auxtrace{4096, 1, 2, 3, 4, 5, 6}),
      Make(kAuxtraceError, AuxtraceError{1, 2, 3, 4, 5, 0, 7, 0, "overflow", 0, 0}),
      Make(kAuxtraceError, AuxtraceError{1, 2, 3, 4, 5, 1, 7, 8, "overflow", 0, 0}),
      Make(kAuxtraceError, AuxtraceError{1, 2, 3, 4, 5, 2, 7, 8, "overflow", 9, 10}),
      Make(kThreadMap, ThreadMap{{{1, "init"}, {2, "sixteen_letters_"}}}),
      Make(kCpuMap, CpuMap{0, false, 0, {0, 1, 5, 65535}}),
      Make(kCpuMap, CpuMap{1, false, 8, {0, 63, 64}}),
      Make(kCpuMap, CpuMap{1, false, 4, {0, 31, 32}}),
      Make(kCpuMap, CpuMap{2, true, 0, {0, 191}}),
      Make(kStatConfig, StatConfig{{{1, 2}, {3, 4}}}),
      Make(kStat, Stat{1, 2, 3, 4, 5, 6}),
      Make(kStatRound, StatRound{1, 2}),
      Make(kEventUpdate, EventUpdate{0, 9, "msec", 0, {}, {}}),
      Make(kEventUpdate, EventUpdate{1, 9, "", 0x3ff0000000000000, {}, {}}),
      Make(kEventUpdate, EventUpdate{2, 9, "cpu/event=1/", 0, {}, {}}),
      Make(kEventUpdate, EventUpdate{3, 9, "", 0, CpuMap{1, false, 8, {0, 3}}, {}}),
      Make(kEventUpdate, EventUpdate{77, 9, "", 0, {}, {1, 2, 3}}),
      Make(kTimeConv, TimeConv{31, 1, 5, false, 0, 0, 0, 0}),
      Make(kTimeConv, TimeConv{31, 1, 5, true, 6, 7, 1, 1}),
      Make(kHeaderFeature, HeaderFeature{3, {1, 2, 3, 4, 5, 6, 7}}),
      Make(kFinishedInit, FinishedInit{}),
      Make(kBpfMetadata, BpfMetadata{"prog", {{"key", "value"}}}),
      Make(kSchedstatCpu, Opaque{{1, 2, 3, 4}}),
      Make(static_cast<RecordType>(kRecordTypePacMask), PacMask{1, 1, 2, 3, 4, 5, 6, 7, 1, 0}),
      Make(static_cast<RecordType>(300), Opaque{{9, 9, 9}}),
      Make(static_cast<RecordType>(40), Opaque{{1, 2, 3, 4, 5, 6, 7, 8}}),
  };
}

// Of an event whose other records have all that a trailer can have.
inline Attr TrailerAttr() {
  Attr attr;
  attr.sample_type = kSampleTid | kSampleTime | kSampleId | kSampleStreamId | kSampleCpu |
                     kSampleIdentifier | kSampleIp;
  attr.flags = kAttrSampleIdAll | kAttrPtrAuth;
  attr.read_format = kReadId | kReadLost;
  return attr;
}

}  // namespace stackreel::perfdata::one_of_each
