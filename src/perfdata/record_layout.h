// The layouts of all records but SAMPLE, and which record has which.
#pragma once

#include "perfdata/kernel_record_layout.h"
#include "perfdata/user_record_layout.h"

namespace stackreel::perfdata {

// Calls visit.operator()<Body>() with the structure that records of `type` decode into.
template <typename Visit>
auto WithRecordBody(uint32_t type, Visit&& visit) {
  switch (static_cast<RecordType>(type)) {
    case RecordType::kMmap:
      return visit.template operator()<Mmap>();
    case RecordType::kLost:
      return visit.template operator()<Lost>();
    case RecordType::kComm:
      return visit.template operator()<Comm>();
    case RecordType::kExit:
    case RecordType::kFork:
      return visit.template operator()<Task>();
    case RecordType::kThrottle:
    case RecordType::kUnthrottle:
      return visit.template operator()<Throttle>();
    case RecordType::kRead:
      return visit.template operator()<Read>();
    case RecordType::kMmap2:
      return visit.template operator()<Mmap2>();
    case RecordType::kAux:
      return visit.template operator()<Aux>();
    case RecordType::kItraceStart:
      return visit.template operator()<ItraceStart>();
    case RecordType::kLostSamples:
      return visit.template operator()<LostSamples>();
    case RecordType::kSwitch:
      return visit.template operator()<Switch>();
    case RecordType::kSwitchCpuWide:
      return visit.template operator()<SwitchCpuWide>();
    case RecordType::kNamespaces:
      return visit.template operator()<Namespaces>();
    case RecordType::kKsymbol:
      return visit.template operator()<Ksymbol>();
    case RecordType::kBpfEvent:
      return visit.template operator()<BpfEvent>();
    case RecordType::kCgroup:
      return visit.template operator()<Cgroup>();
    case RecordType::kTextPoke:
      return visit.template operator()<TextPoke>();
    case RecordType::kAuxOutputHwId:
      return visit.template operator()<AuxOutputHwId>();
    case RecordType::kCallchainDeferred:
      return visit.template operator()<CallchainDeferred>();
    case RecordType::kPtrAuth:
      return visit.template operator()<PtrAuth>();
    case RecordType::kHeaderAttr:
      return visit.template operator()<HeaderAttr>();
    case RecordType::kHeaderEventType:
      return visit.template operator()<HeaderEventType>();
    case RecordType::kHeaderTracingData:
      return visit.template operator()<HeaderTracingData>();
    case RecordType::kHeaderBuildId:
      return visit.template operator()<HeaderBuildId>();
    case RecordType::kFinishedRound:
      return visit.template operator()<FinishedRound>();
    case RecordType::kIdIndex:
      return visit.template operator()<IdIndex>();
    case RecordType::kAuxtraceInfo:
      return visit.template operator()<AuxtraceInfo>();
    case RecordType::kAuxtrace:
      return visit.template operator()<Auxtrace>();
    case RecordType::kAuxtraceError:
      return visit.template operator()<AuxtraceError>();
    case RecordType::kThreadMap:
      return visit.template operator()<ThreadMap>();
    case RecordType::kCpuMap:
      return visit.template operator()<CpuMap>();
    case RecordType::kStatConfig:
      return visit.template operator()<StatConfig>();
    case RecordType::kStat:
      return visit.template operator()<Stat>();
    case RecordType::kStatRound:
      return visit.template operator()<StatRound>();
    case RecordType::kEventUpdate:
      return visit.template operator()<EventUpdate>();
    case RecordType::kTimeConv:
      return visit.template operator()<TimeConv>();
    case RecordType::kHeaderFeature:
      return visit.template operator()<HeaderFeature>();
    case RecordType::kFinishedInit:
      return visit.template operator()<FinishedInit>();
    case RecordType::kBpfMetadata:
      return visit.template operator()<BpfMetadata>();
    case RecordType::kSample:
    case RecordType::kCompressed:
    case RecordType::kCompressed2:
    case RecordType::kSchedstatCpu:
    case RecordType::kSchedstatDomain:
      break;
  }
  if (type == kRecordTypePacMask) return visit.template operator()<PacMask>();
  return visit.template operator()<Opaque>();
}

}  // namespace stackreel::perfdata
