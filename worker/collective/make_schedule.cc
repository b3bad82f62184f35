#include "worker/collective/make_schedule.h"

#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/collective/building_blocks.h"

namespace lockstep::worker {
namespace {

std::vector<int> AllTowers(const Topology& topology) {
  std::vector<int> ranks(topology.num_participants());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<int> TowersOf(const Topology& topology, int worker) {
  std::vector<int> ranks(topology.towers);
  std::iota(ranks.begin(), ranks.end(), topology.rank(worker, 0));
  return ranks;
}

// The first tower of each worker.
std::vector<int> FirstTowers(const Topology& topology) {
  std::vector<int> ranks;
  for (int worker = 0; worker < topology.workers; ++worker) {
    ranks.push_back(topology.rank(worker, 0));
  }
  return ranks;
}

// Tower 0 of every worker, then tower 1, ...
std::vector<int> TowersAcrossWorkers(const Topology& topology) {
  std::vector<int> ranks;
  for (int tower = 0; tower < topology.towers; ++tower) {
    for (int worker = 0; worker < topology.workers; ++worker) {
      ranks.push_back(topology.rank(worker, tower));
    }
  }
  return ranks;
}

// Subchunk s rotates each worker's towers by s * max(1, floor(towers / subchunks)).
std::vector<std::vector<int>> RingOrders(const Topology& topology, int subchunks) {
  const int interval = std::max(1, topology.towers / subchunks);
  std::vector<std::vector<int>> orders(subchunks);
  for (int s = 0; s < subchunks; ++s) {
    for (int worker = 0; worker < topology.workers; ++worker) {
      for (int k = 0; k < topology.towers; ++k) {
        orders[s].push_back(topology.rank(worker, (k + s * interval) % topology.towers));
      }
    }
  }
  return orders;
}

// Of ceil(n / shards) groups, group j has devices j, j + groups, ..., from the start again after
// the last. Vectors take turns.
std::vector<int> GatherGroup(const std::vector<int>& devices, int shards, int index) {
  const int n = static_cast<int>(devices.size());
  const int groups = (n + shards - 1) / shards;
  std::vector<int> group;
  for (int k = 0; k < shards; ++k) group.push_back(devices[(index % groups + k * groups) % n]);
  return group;
}

void AddShuffleOver(const ScheduleSpec& spec, const std::vector<int>& devices,
                    ScheduleBuilder* builder) {
  AddShuffle(AllTowers(spec.topology), GatherGroup(devices, spec.shards, spec.index), spec.length,
             builder);
}

// Across workers, between their first towers.
void AddUpperLevel(const ScheduleSpec& spec, ScheduleBuilder* builder) {
  const std::vector<int> heads = FirstTowers(spec.topology);
  switch (spec.algorithm) {
    case ReductionAlgorithm::kNcclXring:
      return AddRing({heads}, spec.length, builder);
    case ReductionAlgorithm::kNcclRechd:
      return AddHalvingDoubling(heads, spec.length, builder);
    case ReductionAlgorithm::kNcclPscpu:
      return AddShuffle(heads, heads, spec.length, builder);
    default:
      return AddShuffle(heads, Members(heads).first(spec.shards), spec.length, builder);
  }
}

// Reduce within each worker, the first tower goes up, and broadcasts down.
void AddTwoLevels(const ScheduleSpec& spec, ScheduleBuilder* builder) {
  const Topology& topology = spec.topology;
  for (int worker = 0; worker < topology.workers; ++worker) {
    builder->Sum(topology.rank(worker, 0), {0, spec.length}, TowersOf(topology, worker),
                 /*is_total=*/topology.workers == 1);
  }
  builder->EndTick();
  if (topology.workers > 1) AddUpperLevel(spec, builder);
  for (int worker = 0; worker < topology.workers; ++worker) {
    for (const int tower : TowersOf(topology, worker)) {
      builder->Copy(topology.rank(worker, 0), tower, {0, spec.length});
    }
  }
  builder->EndTick();
}

void AddAlgorithm(const ScheduleSpec& spec, ScheduleBuilder* builder) {
  const Topology& topology = spec.topology;
  const std::vector<int> all = AllTowers(topology);
  switch (spec.algorithm) {
    case ReductionAlgorithm::kXring:
      return AddRing(RingOrders(topology, spec.shards), spec.length, builder);
    case ReductionAlgorithm::kCollective:
      if (all.size() > 1) AddRing({all}, spec.length, builder);
      return;
    case ReductionAlgorithm::kRechd:
      return AddHalvingDoubling(all, spec.length, builder);
    case ReductionAlgorithm::kPscpu:
      return AddShuffleOver(spec, FirstTowers(topology), builder);
    case ReductionAlgorithm::kPsgpu:
      return AddShuffleOver(spec, TowersAcrossWorkers(topology), builder);
    case ReductionAlgorithm::kNccl:
    case ReductionAlgorithm::kNcclXring:
    case ReductionAlgorithm::kNcclRechd:
    case ReductionAlgorithm::kNcclPscpu:
    case ReductionAlgorithm::kPscpuPscpu:
      return AddTwoLevels(spec, builder);
    case ReductionAlgorithm::kHierarchicalCopy:
      return AddHierarchicalCopy(all, spec.index, spec.length, builder);
    case ReductionAlgorithm::kReductionToOne:
      AddReduction(all, spec.root, spec.length, /*is_total=*/true, builder);
      return AddBroadcast(spec.root, all, spec.length, builder);
    case ReductionAlgorithm::kGather:
      if (all.size() > 1) AddRingOfCopies({all}, spec.length, builder);
      return;
  }
}

}  // namespace

absl::StatusOr<Schedule> MakeSchedule(const ScheduleSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAlgorithm(spec.algorithm, spec.topology, spec.shards));
  const int n = spec.topology.num_participants();
  if (spec.index < 0 || spec.root < 0 || spec.root >= n) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(spec.algorithm), ": index ", spec.index, ", root ", spec.root, " of ", n,
                     " participants. Remedy: an index is not negative, and the root is one of "
                     "them"));
  }
  ScheduleBuilder builder(n, spec.length);
  AddAlgorithm(spec, &builder);
  if (n > 1) return builder.Finish();
  ScheduleBuilder alone(1, spec.length);
  const int own = 0;
  alone.Sum(0, {0, spec.length}, {&own, 1}, /*is_total=*/true);
  return alone.Finish();
}

}  // namespace lockstep::worker
