// Faults that a simulation injects into the processes and the network of a job, counted by kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep::sim {

enum class Fault : uint8_t {
  kLostRequest,
  kLateRequest,  // lost for its caller, arrives all the same
  kLostReply,
  kDuplicateRequest,
  kStalledMessage,  // for longer than its call may take
  kReorderedMessage,
  kCut,  // of one direction between two processes
  kWorkerKilled,
  kWorkerHung,
  kPsKilled,
  kPsSuspended,
  kTornWrite,  // its process dies in the middle of a file operation
  kChiefKilled,
  kChiefTerminated,
  kChiefSuspended,
  kClockSet,  // the wall clock, of all processes
};
inline constexpr size_t kNumFaults = static_cast<size_t>(Fault::kClockSet) + 1;

// "lost request"
absl::string_view NameOf(Fault fault);

class FaultCounts {
 public:
  void Add(Fault fault) { ++counts_[static_cast<size_t>(fault)]; }
  void Add(const FaultCounts& others);
  uint64_t Of(Fault fault) const { return counts_[static_cast<size_t>(fault)]; }
  uint64_t total() const;

 private:
  std::array<uint64_t, kNumFaults> counts_ = {};
};

}  // namespace lockstep::sim
