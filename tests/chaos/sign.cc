#include "tests/chaos/sign.h"

namespace lockstep::test {

Sign SignOf(const Fault& fault) {
  if (fault.peer.has_value()) return {Sign::Log::kBoth};
  // The name of the task would tell of the kill before the full disk.
  if (fault.kind == FaultKind::kFullDisk) return {.text = "No space left on device"};
  switch (fault.kind) {
    case FaultKind::kRollingRestart:  // the chief logs so of each worker
      return {Sign::Log::kChiefs, "has left: it was told to stop"};
    case FaultKind::kFewDescriptors:
      return {Sign::Log::kOwn, "descriptors run out"};
    case FaultKind::kWrongToken:
      return {Sign::Log::kOwn, "refused a call: "};
    case FaultKind::kIdleConnections:
    case FaultKind::kGarbage:
      return {Sign::Log::kNobodies};
    default:
      break;
  }
  // Nobody sees the others end.
  if (fault.kind == FaultKind::kKill && fault.target == FaultTarget::kAll) {
    return {Sign::Log::kChiefs, "restored from "};
  }
  return {};
}

}  // namespace lockstep::test
