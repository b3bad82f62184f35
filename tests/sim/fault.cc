#include "tests/sim/fault.h"

#include <numeric>

namespace lockstep::sim {

absl::string_view NameOf(Fault fault) {
  switch (fault) {
    case Fault::kLostRequest:
      return "lost request";
    case Fault::kLateRequest:
      return "late request";
    case Fault::kLostReply:
      return "lost reply";
    case Fault::kDuplicateRequest:
      return "request that arrives twice";
    case Fault::kStalledMessage:
      return "message past its deadline";
    case Fault::kReorderedMessage:
      return "message overtaken by a later one";
    case Fault::kCut:
      return "direction cut";
    case Fault::kWorkerKilled:
      return "worker killed";
    case Fault::kWorkerHung:
      return "worker hung";
    case Fault::kPsKilled:
      return "ps killed";
    case Fault::kPsSuspended:
      return "ps suspended";
    case Fault::kTornWrite:
      return "file operation torn by a death";
    case Fault::kChiefKilled:
      return "chief killed";
    case Fault::kChiefTerminated:
      return "chief terminated";
    case Fault::kChiefSuspended:
      return "chief suspended";
    case Fault::kClockSet:
      return "wall clock set";
  }
  return "";
}

void FaultCounts::Add(const FaultCounts& others) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += others.counts_[i];
}

uint64_t FaultCounts::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

}  // namespace lockstep::sim
