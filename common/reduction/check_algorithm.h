// Checks that an algorithm can reduce over a job's towers. The chief checks before anything starts,
// and the workers check again.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/reduction/algorithm.h"
#include "common/reduction/all_reduce_spec.h"

namespace lockstep {

struct Topology {
  int workers = 1;
  int towers = 1;  // of each worker

  int num_participants() const { return workers * towers; }
  int rank(int worker, int tower) const { return worker * towers + tower; }

  friend bool operator==(const Topology&, const Topology&) = default;
};

// INVALID_ARGUMENT naming field, expected and got: no participants; no shards, or more of them than
// there are towers (ring) or gather devices (shuffle); a ring of one; nccl or hierarchical_copy on
// several workers.
absl::Status CheckAlgorithm(ReductionAlgorithm algorithm, const Topology& topology, int shards);

// `has_gpus`: the towers are on GPUs. INVALID_ARGUMENT naming the range: an algorithm that needs
// GPUs without them, or that CheckAlgorithm refuses.
absl::Status CheckAllReduceSpec(const AllReduceSpec& spec, const Topology& topology, bool has_gpus);

// Returns the algorithm of an AllReduce, whose field the caller adds to an error. INVALID_ARGUMENT:
// neither "nccl" nor "hierarchical_copy"; nccl without GPUs.
absl::StatusOr<ReductionAlgorithm> ParseAllReduceAlgorithm(absl::string_view all_reduce_alg,
                                                           bool has_gpus);

}  // namespace lockstep
