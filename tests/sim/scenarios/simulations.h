// The jobs of the scenarios. Each returns what was wrong with the job of a seed, empty when nothing
// was, and appends what happened to `trace`.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/trace.h"

namespace lockstep::sim {

// Synchronous jobs that TensorFlow's rules allow, on a bad network.
std::string SimulateFifo(uint64_t seed, Trace* trace);
std::string SimulatePerReplica(uint64_t seed, Trace* trace);

// Asynchronous jobs; workers but the first die, and some come back.
std::string SimulateAsynchronous(uint64_t seed, Trace* trace);
std::string SimulateAsynchronousDeaths(uint64_t seed, Trace* trace);

// Workers die at random moments and come back, some at once and some after their lease.
std::string SimulateWorkerDeaths(uint64_t seed, Trace* trace);

// Workers die, some for ever, under each quorum policy.
std::string SimulateWait(uint64_t seed, Trace* trace);
std::string SimulateShrink(uint64_t seed, Trace* trace);
// A step needs no fewer gradients than a ps admits replicas, at any moment.
std::string SimulateShrinkViews(uint64_t seed, Trace* trace);
std::string SimulateAbort(uint64_t seed, Trace* trace);

// Replicated jobs. Workers die one after the other: no bit may differ.
std::string SimulateReplicatedDeaths(uint64_t seed, Trace* trace);
// Several at once, and with SHRINK: the job may lose all that have the variables, and then ends so.
std::string SimulateReplicatedDisaster(uint64_t seed, Trace* trace);

// The chief dies at any moment, and another one takes over from the shards as they are.
std::string SimulateChiefDeaths(uint64_t seed, Trace* trace);
std::string SimulateChiefDeathsFifo(uint64_t seed, Trace* trace);
std::string SimulateChiefDeathsAsynchronous(uint64_t seed, Trace* trace);
// The chief is told to end at any moment. No save succeeds: the last chief gives up for that
// reason, and leaves the model to the ps.
std::string SimulateChiefTerminations(uint64_t seed, Trace* trace);
std::string SimulateChiefTerminationsAsynchronous(uint64_t seed, Trace* trace);

// Chiefs stand by while the one that commands is killed, suspended or told to end.
std::string SimulateStandbys(uint64_t seed, Trace* trace);

// On a network that repeats, reorders, holds and loses messages, and that is cut in one direction
// between two processes at a time.
std::string SimulateRoughNetwork(uint64_t seed, Trace* trace);
std::string SimulateRoughNetworkFifo(uint64_t seed, Trace* trace);
std::string SimulateRoughNetworkAsynchronous(uint64_t seed, Trace* trace);

// Workers reduce together; one of them dies or hangs.
std::string SimulateCollectives(uint64_t seed, Trace* trace);
std::string SimulateCollectiveDeath(uint64_t seed, Trace* trace);
std::string SimulateCollectiveHang(uint64_t seed, Trace* trace);

}  // namespace lockstep::sim
