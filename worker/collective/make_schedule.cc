#include "worker/collective/make_schedule.h"

#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/collective/building_blocks.h"

namespace lockstep::worker {
namespace {

absl::Status Refuse(const ScheduleSpec& spec, absl::string_view what, absl::string_view remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat(Name(spec.algorithm), " over ", spec.topology.workers, " workers with ",
                   spec.topology.towers, " towers each: ", what, ". Remedy: ", remedy));
}

absl::Status CheckShards(const ScheduleSpec& spec, int most, absl::string_view of) {
  if (spec.shards <= most) return absl::OkStatus();
  return Refuse(
      spec, absl::StrCat("shards: expected at most ", most, ", the ", of, ", got ", spec.shards),
      absl::StrCat("write #", most, " or less"));
}

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

absl::Status AddShuffleOver(const ScheduleSpec& spec, const std::vector<int>& devices,
                            ScheduleBuilder* builder) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckShards(spec, static_cast<int>(devices.size()), "number of gather devices"));
  AddShuffle(AllTowers(spec.topology), GatherGroup(devices, spec.shards, spec.index), spec.length,
             builder);
  return absl::OkStatus();
}

absl::Status AddRingOver(const ScheduleSpec& spec, ScheduleBuilder* builder) {
  if (spec.topology.num_participants() < 2) {
    return Refuse(spec, "a ring has at least 2 participants",
                  "use pscpu/pscpu, or more workers or towers");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckShards(spec, spec.topology.towers, "towers of a worker"));
  AddRing(RingOrders(spec.topology, spec.shards), spec.length, builder);
  return absl::OkStatus();
}

// Across workers, between their first towers.
absl::Status AddUpperLevel(const ScheduleSpec& spec, ScheduleBuilder* builder) {
  const std::vector<int> heads = FirstTowers(spec.topology);
  switch (spec.algorithm) {
    case ReductionAlgorithm::kNcclXring:
      LOCKSTEP_RETURN_IF_ERROR(CheckShards(spec, 1, "towers of a worker that go up"));
      AddRing({heads}, spec.length, builder);
      return absl::OkStatus();
    case ReductionAlgorithm::kNcclRechd:
      AddHalvingDoubling(heads, spec.length, builder);
      return absl::OkStatus();
    case ReductionAlgorithm::kNcclPscpu:
      AddShuffle(heads, heads, spec.length, builder);
      return absl::OkStatus();
    default:
      LOCKSTEP_RETURN_IF_ERROR(CheckShards(spec, spec.topology.workers, "number of workers"));
      AddShuffle(heads, Members(heads).first(spec.shards), spec.length, builder);
      return absl::OkStatus();
  }
}

// Reduce within each worker, the first tower goes up, and broadcasts down.
absl::Status AddTwoLevels(const ScheduleSpec& spec, ScheduleBuilder* builder) {
  const Topology& topology = spec.topology;
  for (int worker = 0; worker < topology.workers; ++worker) {
    builder->Sum(topology.rank(worker, 0), {0, spec.length}, TowersOf(topology, worker),
                 /*is_total=*/topology.workers == 1);
  }
  builder->EndTick();
  if (topology.workers > 1) LOCKSTEP_RETURN_IF_ERROR(AddUpperLevel(spec, builder));
  for (int worker = 0; worker < topology.workers; ++worker) {
    for (const int tower : TowersOf(topology, worker)) {
      builder->Copy(topology.rank(worker, 0), tower, {0, spec.length});
    }
  }
  builder->EndTick();
  return absl::OkStatus();
}

absl::Status CheckOneWorker(const ScheduleSpec& spec) {
  if (spec.topology.workers == 1) return absl::OkStatus();
  return Refuse(spec, "it reduces the towers of one worker",
                "use an algorithm across workers, such as pscpu/pscpu or xring");
}

absl::Status AddAlgorithm(const ScheduleSpec& spec, ScheduleBuilder* builder) {
  const Topology& topology = spec.topology;
  const std::vector<int> all = AllTowers(topology);
  switch (spec.algorithm) {
    case ReductionAlgorithm::kXring:
      return AddRingOver(spec, builder);
    case ReductionAlgorithm::kCollective:
      if (all.size() > 1) AddRing({all}, spec.length, builder);
      return absl::OkStatus();
    case ReductionAlgorithm::kRechd:
      AddHalvingDoubling(all, spec.length, builder);
      return absl::OkStatus();
    case ReductionAlgorithm::kPscpu:
      return AddShuffleOver(spec, FirstTowers(topology), builder);
    case ReductionAlgorithm::kPsgpu:
      return AddShuffleOver(spec, TowersAcrossWorkers(topology), builder);
    case ReductionAlgorithm::kNccl:
      LOCKSTEP_RETURN_IF_ERROR(CheckOneWorker(spec));
      return AddTwoLevels(spec, builder);
    case ReductionAlgorithm::kNcclXring:
    case ReductionAlgorithm::kNcclRechd:
    case ReductionAlgorithm::kNcclPscpu:
    case ReductionAlgorithm::kPscpuPscpu:
      return AddTwoLevels(spec, builder);
    case ReductionAlgorithm::kHierarchicalCopy:
      LOCKSTEP_RETURN_IF_ERROR(CheckOneWorker(spec));
      AddHierarchicalCopy(all, spec.index, spec.length, builder);
      return absl::OkStatus();
    case ReductionAlgorithm::kReductionToOne:
      AddReduction(all, spec.root, spec.length, /*is_total=*/true, builder);
      AddBroadcast(spec.root, all, spec.length, builder);
      return absl::OkStatus();
    case ReductionAlgorithm::kGather:
      if (all.size() > 1) AddRingOfCopies({all}, spec.length, builder);
      return absl::OkStatus();
  }
  return absl::InternalError("no such algorithm");
}

}  // namespace

absl::StatusOr<Schedule> MakeSchedule(const ScheduleSpec& spec) {
  if (spec.topology.workers < 1 || spec.topology.towers < 1) {
    return Refuse(spec, "no participants", "give at least one worker with one tower");
  }
  const int n = spec.topology.num_participants();
  if (spec.shards < 1 || spec.index < 0 || spec.root < 0 || spec.root >= n) {
    return Refuse(spec,
                  absl::StrCat("shards ", spec.shards, ", index ", spec.index, ", root ", spec.root,
                               " of ", n, " participants"),
                  "shards are at least 1, an index is not negative, and the root is one of them");
  }
  ScheduleBuilder builder(n, spec.length);
  LOCKSTEP_RETURN_IF_ERROR(AddAlgorithm(spec, &builder));
  if (n > 1) return builder.Finish();
  ScheduleBuilder alone(1, spec.length);
  const int own = 0;
  alone.Sum(0, {0, spec.length}, {&own, 1}, /*is_total=*/true);
  return alone.Finish();
}

}  // namespace lockstep::worker
