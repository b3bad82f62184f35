#include "tests/sim/trace.h"

#include <utility>

#include "common/base/philox.h"

namespace lockstep::sim {
namespace {

uint64_t HashOf(const Node& node) { return MixSeeds(static_cast<uint64_t>(node.role), node.index); }

}  // namespace

void Trace::NoteEvent(absl::Duration time, EventKind kind, const Link& ends) {
  ++events_;
  hash_ = MixSeeds(hash_, static_cast<uint64_t>(absl::ToInt64Nanoseconds(time)));
  hash_ = MixSeeds(
      hash_, MixSeeds(static_cast<uint64_t>(kind), MixSeeds(HashOf(ends.from), HashOf(ends.to))));
}

void Trace::NoteFault(Fault fault) {
  faults_.Add(fault);
  hash_ = MixSeeds(hash_, static_cast<uint64_t>(fault));
}

void Trace::NoteViolation(std::string violation) {
  if (violation_.empty()) violation_ = std::move(violation);
}

void Trace::Append(const Trace& next) {
  hash_ = MixSeeds(hash_, next.hash_);
  events_ += next.events_;
  faults_.Add(next.faults_);
  NoteViolation(next.violation_);
}

}  // namespace lockstep::sim
