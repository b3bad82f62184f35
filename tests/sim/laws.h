// Laws that must hold at the end of every run, beside the invariants (invariants.h).
#pragma once

#include <string>
#include <vector>

#include "tests/sim/sim_cluster.h"

namespace lockstep::sim {

// Each returns the violations, one line each; empty: the law holds.

// Asynchronous: the step shard takes as many gradients as the job has steps.
std::vector<std::string> BrokenAsynchronousLaws(const SimCluster& cluster);

// The laws L1 to L4 of TensorFlow's token queue, for the steps that were committed. A worker that
// finds its step committed already does not push; so "exactly" there is "at most" here.
std::vector<std::string> BrokenFifoLaws(const SimCluster& cluster);

// The variables whose values differ between two jobs of the same options, now.
std::vector<std::string> Differences(SimCluster* one, SimCluster* other);

// Runs a synchronous job in which no process dies to its end, and judges it by the laws of its
// token policy. Returns the violations; empty: none.
std::string RunAndJudge(SimCluster* cluster);

}  // namespace lockstep::sim
