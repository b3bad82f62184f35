// Jobs and checks that several scenarios share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tests/sim/random.h"
#include "tests/sim/sim_cluster.h"

namespace lockstep::sim {

// Simulated time within which every job has an end.
inline constexpr absl::Duration kLimit = absl::Minutes(30);

// A small job that computes the same every time, on a network that may lose and delay messages.
SimOptions SmallJob(uint64_t seed, Random random);

// The same with a variable that closes in ranges, from messages that the ps keep.
SimOptions LargeJob(uint64_t seed);

// A job with 2 or 3 ps that is long enough for a ps that died to come back and to become a copy.
SimOptions CopiedJob(uint64_t seed, Random* random);

// The same with steps so long that much may happen in a few of them.
SimOptions SlowJob(uint64_t seed, int64_t steps, Random* random);

// Gives a job, each by chance, tables, an optimizer with slots, a backup worker.
void VaryUpdates(Random* random, SimOptions* options);

// On a network that repeats, holds and loses messages.
NetworkOptions RoughNetwork(Random* random);

// Gives the shards of a job copies, and checkpoints in `folder`; by chance also a rough network.
void ProtectShards(const std::string& folder, Random* random, SimOptions* options);

// After the end of a job: appends that the chief failed, or did not make every step.
void AppendBadEnd(const SimCluster& cluster, std::vector<std::string>* broken);

// Appends that the job has left its epoch `from`, to go back to a checkpoint, which only the loss
// of a shard explains.
void AppendReturn(Epoch from, SimCluster* cluster, std::vector<std::string>* broken);

// Appends what is wrong with a job that has ended.
using Judge = absl::FunctionRef<void(SimCluster* cluster, std::vector<std::string>* broken)>;

// Runs a job twice, undisturbed with the options `calm`, and with `disturb`, which plans its
// faults. Returns the violations: those that `judge` finds in the second run (by default: it has no
// good end), and other results than in the first. With a backup worker results depend on the first
// pushes to arrive: that job only runs disturbed.
std::string CompareDisturbed(const SimOptions& calm, const SimOptions& disturbed,
                             absl::FunctionRef<void(SimCluster*)> disturb, SimRun* run);
std::string CompareDisturbed(const SimOptions& calm, const SimOptions& disturbed,
                             absl::FunctionRef<void(SimCluster*)> disturb, Judge judge,
                             SimRun* run);

// Returns the forbidden ends of processes that were not killed. Allowed: it is done, was told to
// end, or has found another one in its place.
std::string BadEnds(SimCluster* cluster);

// A synchronous job with this token policy that TensorFlow's rules allow.
SimOptions LawfulJob(uint64_t seed, TokenPolicy policy);

SimOptions AsynchronousJob(uint64_t seed);

}  // namespace lockstep::sim
