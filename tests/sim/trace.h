// What happened in a simulation: a hash of all events in their order, how many there were, and
// which faults. The same seed gives the same hash.
#pragma once

#include <cstdint>

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
  // What happened in another simulation, after this one.
  void Append(const Trace& next);

  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }
  const FaultCounts& faults() const { return faults_; }

 private:
  uint64_t hash_ = 0;
  uint64_t events_ = 0;
  FaultCounts faults_;
};

}  // namespace lockstep::sim
