// What happened in a simulation: how many events, and which faults.
#pragma once

#include <cstdint>

#include "tests/sim/fault.h"

namespace lockstep::sim {

class Trace {
 public:
  void NoteEvent() { ++events_; }
  void NoteFault(Fault fault) { faults_.Add(fault); }
  // What happened in another simulation, after this one.
  void Append(const Trace& next) {
    events_ += next.events_;
    faults_.Add(next.faults_);
  }

  uint64_t events() const { return events_; }
  const FaultCounts& faults() const { return faults_; }

 private:
  uint64_t events_ = 0;
  FaultCounts faults_;
};

}  // namespace lockstep::sim
