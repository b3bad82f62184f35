// From an algorithm to the schedule of one vector. docs/collectives.md has each algorithm's order
// of additions, messages and bytes; the formulas are those of TensorFlow's all_reduce.py, but for
// what is marked there as ours.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/reduction/algorithm.h"
#include "common/reduction/check_algorithm.h"
#include "worker/collective/schedule.h"

namespace lockstep::worker {

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

// INVALID_ARGUMENT naming field, expected and got: what CheckAlgorithm refuses; index or root out
// of range. With one participant a schedule is the division of a mean alone.
absl::StatusOr<Schedule> MakeSchedule(const ScheduleSpec& spec);

}  // namespace lockstep::worker
