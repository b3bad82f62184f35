// What must hold in every run, whatever the network and the workers did.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/sim_cluster.h"

namespace lockstep::sim {

// Each returns what is broken, one line each; empty when the law holds.

// Every value that a worker was given is the one that the accepted gradients make, to the last bit:
// per step and variable their mean in the order (worker, push_seq), times the rate, subtracted.
std::vector<std::string> BrokenNumbers(const SimCluster& cluster);

// Asynchronous: every value that a worker was given is the one that the gradients accepted before
// make, one after another in the order of their arrival; none is staler than allowed; the step
// shard takes as many as the job has steps.
std::vector<std::string> BrokenAsynchronousLaws(const SimCluster& cluster);

// The laws L1 to L4 of TensorFlow's token queue, for the steps that were committed. A worker that
// finds its step committed already does not push; so "exactly" there is "at most" here.
std::vector<std::string> BrokenFifoLaws(const SimCluster& cluster);

// One token per replica and step, no replica twice in a step, at most one gradient per replica and
// stamp.
std::vector<std::string> BrokenPerReplicaLaws(const SimCluster& cluster);

// The variables whose values differ between two jobs of the same options, now.
std::vector<std::string> Differences(SimCluster* one, SimCluster* other);

// Runs a synchronous job of which nobody dies to its end, and judges it by the laws of its token
// policy. What was wrong; empty when nothing was.
std::string RunAndJudge(SimCluster* cluster);

}  // namespace lockstep::sim
