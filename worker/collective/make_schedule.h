// From an algorithm to the schedule of one vector. docs/collectives.md has each algorithm's order
// of additions, messages and bytes; the formulas are those of TensorFlow's all_reduce.py, but for
// what is marked there as ours.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/reduction/algorithm.h"
#include "worker/collective/schedule.h"

namespace lockstep::worker {

struct Topology {
  int workers = 1;
  int towers = 1;  // of each worker

  int num_participants() const { return workers * towers; }
  int rank(int worker, int tower) const { return worker * towers + tower; }

  friend bool operator==(const Topology&, const Topology&) = default;
};

struct ScheduleSpec {
  ReductionAlgorithm algorithm = ReductionAlgorithm::kXring;
  Topology topology;
  // Subchunks of a ring, gather devices of a shuffle; 1 for algorithms that have neither.
  int shards = 1;
  // Position of the vector among those reduced together: shuffles and hierarchical copies take
  // turns in who adds.
  int index = 0;
  // Who adds in a reduction to one.
  int root = 0;
  size_t length = 0;  // elements
};

// INVALID_ARGUMENT naming field, expected and got: no participants; more shards than there are
// towers (ring) or gather devices (shuffle); a ring of one; nccl or hierarchical_copy on several
// workers; root out of range. With one participant a schedule is the division of a mean alone.
absl::StatusOr<Schedule> MakeSchedule(const ScheduleSpec& spec);

}  // namespace lockstep::worker
