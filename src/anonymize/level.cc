#include "anonymize/level.h"

namespace stackreel::anonymize {

using perfdata::Sensitivity;

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kAddresses:
      return "addresses";
    case Level::kIdentity:
      return "identity";
    case Level::kSymbols:
      return "symbols";
  }
  return "";
}

// No default: a class added tomorrow does not compile until it is decided what becomes of it.
Treatment TreatmentOf(Level level, Sensitivity sensitivity) {
  const auto from = [level](Level least, Treatment treatment, Treatment below) {
    return level >= least ? treatment : below;
  };
  switch (sensitivity) {
    case Sensitivity::kNone:
      return Treatment::kKeep;
    case Sensitivity::kCodeAddress:
    case Sensitivity::kDataAddress:
    case Sensitivity::kMapAddress:
    case Sensitivity::kMapOffset:
    case Sensitivity::kKernelAddress:
      return Treatment::kMove;
    case Sensitivity::kEventConfig:
      return Treatment::kEvent;
    case Sensitivity::kPhysicalAddress:
    case Sensitivity::kRegisters:
    case Sensitivity::kPayload:
      return Treatment::kDrop;
    case Sensitivity::kPid:
      return from(Level::kIdentity, Treatment::kRenumber, Treatment::kKeep);
    case Sensitivity::kComm:
    case Sensitivity::kSymbol:
    case Sensitivity::kFunction:
    case Sensitivity::kEventName:
    case Sensitivity::kCommandLine:
      return from(Level::kIdentity, Treatment::kPseudonym, Treatment::kText);
    case Sensitivity::kPath:
    case Sensitivity::kCgroupPath:
    case Sensitivity::kHostName:
    case Sensitivity::kRelease:
    case Sensitivity::kMachine:
    case Sensitivity::kFileId:
      return from(Level::kIdentity, Treatment::kPseudonym, Treatment::kKeep);
    case Sensitivity::kBuildId:
      return from(Level::kSymbols, Treatment::kPseudonym, Treatment::kKeep);
    case Sensitivity::kTime:
    case Sensitivity::kWallTime:
      return from(Level::kIdentity, Treatment::kShift, Treatment::kKeep);
    // It would tell by how much times were shifted; what it serves is AUX data, none of which stay.
    case Sensitivity::kCycles:
      return from(Level::kIdentity, Treatment::kDrop, Treatment::kKeep);
  }
  return Treatment::kDrop;
}

}  // namespace stackreel::anonymize
