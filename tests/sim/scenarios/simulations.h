// The jobs of the scenarios. Each returns what was wrong with the job of a seed, empty when nothing
// was, and appends what happened to its trace.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/sim_run.h"

namespace lockstep::sim {

// Synchronous jobs that TensorFlow's rules allow, on a bad network.
std::string SimulateFifo(uint64_t seed, SimRun* run);
std::string SimulatePerReplica(uint64_t seed, SimRun* run);

// Asynchronous jobs; workers but the first die, and some come back.
std::string SimulateAsynchronous(uint64_t seed, SimRun* run);
std::string SimulateAsynchronousDeaths(uint64_t seed, SimRun* run);

// Workers die at random moments and come back, some at once and some after their lease.
std::string SimulateWorkerDeaths(uint64_t seed, SimRun* run);

// Workers die, some for ever, under each quorum policy.
std::string SimulateWait(uint64_t seed, SimRun* run);
std::string SimulateShrink(uint64_t seed, SimRun* run);
// A step needs no fewer gradients than a ps admits replicas, at any moment.
std::string SimulateShrinkViews(uint64_t seed, SimRun* run);
std::string SimulateAbort(uint64_t seed, SimRun* run);

// Workers come, depart, die and come back in a job with sync.min_replicas: each step has the
// gradients of its replica view, each made of its share of the global batch alone.
std::string SimulateElastic(uint64_t seed, SimRun* run);

// Replicated jobs. Workers die one after the other: no bit may differ.
std::string SimulateReplicatedDeaths(uint64_t seed, SimRun* run);
// Several at once, and with SHRINK: the job may lose all that have the variables, and then ends so.
std::string SimulateReplicatedDisaster(uint64_t seed, SimRun* run);
// Workers die when the last step has closed, at times before its version is stored.
std::string SimulateReplicatedEnds(uint64_t seed, SimRun* run);

// The chief dies at any moment, and another one takes over from the shards as they are.
std::string SimulateChiefDeaths(uint64_t seed, SimRun* run);
std::string SimulateChiefDeathsFifo(uint64_t seed, SimRun* run);
std::string SimulateChiefDeathsAsynchronous(uint64_t seed, SimRun* run);
// The chief is told to end at any moment. No save succeeds: the last chief gives up for that
// reason, and leaves the model to the ps.
std::string SimulateChiefTerminations(uint64_t seed, SimRun* run);
std::string SimulateChiefTerminationsAsynchronous(uint64_t seed, SimRun* run);

// Chiefs stand by while the one that commands is killed, suspended or told to end.
std::string SimulateStandbys(uint64_t seed, SimRun* run);
// The same while the network is cut in one direction between two processes at a time.
std::string SimulateStandbysCut(uint64_t seed, SimRun* run);
// A worker dies with the chief. Its successor's registration reaches the next chief late, when that
// has adopted the others.
std::string SimulateStandbysLateWorker(uint64_t seed, SimRun* run);

// A variable is so large that ranges of it close before the rest, on a rough network.
std::string SimulateLargeVariables(uint64_t seed, SimRun* run);

// Ps die at any moment, and the chief with them at times: the job goes back to its newest
// checkpoint in a new epoch, as often as it takes.
std::string SimulatePsDeaths(uint64_t seed, SimRun* run);

// Each shard has a copy at the next ps. Nothing dies.
std::string SimulateCopies(uint64_t seed, SimRun* run);
// One ps dies after the other, each when all shards have copies: the job goes on in its epoch, and
// no worker notices.
std::string SimulateCopyDeaths(uint64_t seed, SimRun* run);
// The network is cut in one direction between two processes, those of a pair too.
std::string SimulateCopyCuts(uint64_t seed, SimRun* run);
// A ps dies at once with the chief or with the ps that keeps its copy, a few times: the job goes
// on, or back to its newest checkpoint in a new epoch.
std::string SimulateCopyDisasters(uint64_t seed, SimRun* run);

// The same jobs with chiefs that stand by, on a rough network. Ps, chiefs and workers die, and ps
// and chiefs are stopped, one after the other, each when all shards have copies: the job goes on in
// its epoch.
std::string SimulateCopyStandbys(uint64_t seed, SimRun* run);
// The chief dies or is stopped while it makes the shards and their copies.
std::string SimulateCopyStarts(uint64_t seed, SimRun* run);
// Ps are stopped and go on; meanwhile others are stopped or die, and the chief does.
std::string SimulateCopyStops(uint64_t seed, SimRun* run);
// The same of ps without copies: nothing is lost, and the job waits.
std::string SimulatePsStops(uint64_t seed, SimRun* run);

// On a network that repeats, reorders, holds and loses messages, and that is cut in one direction
// between two processes at a time.
std::string SimulateRoughNetwork(uint64_t seed, SimRun* run);
std::string SimulateRoughNetworkFifo(uint64_t seed, SimRun* run);
std::string SimulateRoughNetworkAsynchronous(uint64_t seed, SimRun* run);

// Workers reduce together; one of them dies or hangs.
std::string SimulateCollectives(uint64_t seed, SimRun* run);
std::string SimulateCollectiveDeath(uint64_t seed, SimRun* run);
std::string SimulateCollectiveHang(uint64_t seed, SimRun* run);

}  // namespace lockstep::sim
