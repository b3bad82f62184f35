// Trace records a simulation: a hash of all events in their order, their number, the faults, and
// the first violation. The same seed gives the same hash.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "tests/sim/fault.h"
#include "tests/sim/node.h"

namespace lockstep::sim {

enum class EventKind : uint8_t {
  kTimer,  // of a process, or of the simulation itself: it has no ends
  kRequest,
  kReply,
  kFailure,  // of a call, as its caller sees it
};

class Trace {
 public:
  void NoteEvent(absl::Duration time, EventKind kind, const Link& ends);
  void NoteFault(Fault fault);
  // An invariant is broken. The first one counts.
  void NoteViolation(std::string violation);
  // Appends the trace of another simulation, after this one.
  void Append(const Trace& next);

  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }
  // Empty: there was none.
  const std::string& violation() const { return violation_; }
  const FaultCounts& faults() const { return faults_; }

 private:
  uint64_t hash_ = 0;
  uint64_t events_ = 0;
  FaultCounts faults_;
  std::string violation_;
};

}  // namespace lockstep::sim
