#include "common/reduction/check_algorithm.h"

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kMostOfName = 80;

// Refuses to run one algorithm on one topology.
struct Refusal {
  ReductionAlgorithm algorithm;
  Topology topology;

  absl::Status Because(absl::string_view what, absl::string_view remedy) const {
    return absl::InvalidArgumentError(absl::StrCat(Name(algorithm), " over ", topology.workers,
                                                   " workers with ", topology.towers,
                                                   " towers each: ", what, ". Remedy: ", remedy));
  }
};

absl::Status CheckShards(const Refusal& refusal, int shards, int most, absl::string_view of) {
  if (shards <= most) return absl::OkStatus();
  return refusal.Because(
      absl::StrCat("shards: expected at most ", most, ", the ", of, ", got ", shards),
      absl::StrCat("write #", most, " or less"));
}

}  // namespace

absl::Status CheckAlgorithm(ReductionAlgorithm algorithm, const Topology& topology, int shards) {
  const Refusal refusal{algorithm, topology};
  const auto check_shards = [&](int most, absl::string_view of) {
    return CheckShards(refusal, shards, most, of);
  };
  if (topology.workers < 1 || topology.towers < 1) {
    return refusal.Because("no participants", "give at least one worker with one tower");
  }
  if (shards < 1) {
    return refusal.Because(absl::StrCat("shards: expected at least 1, got ", shards), "write #1");
  }
  const bool is_one_worker = topology.workers == 1;
  switch (algorithm) {
    case ReductionAlgorithm::kXring:
      if (topology.num_participants() > 1) {
        return check_shards(topology.towers, "towers of a worker");
      }
      return refusal.Because("a ring has at least 2 participants",
                             "use pscpu/pscpu, or more workers or towers");
    case ReductionAlgorithm::kPscpu:
      return check_shards(topology.workers, "number of gather devices");
    case ReductionAlgorithm::kPsgpu:
      return check_shards(topology.num_participants(), "number of gather devices");
    case ReductionAlgorithm::kNcclXring:
      // One worker has no second level, here and below.
      if (is_one_worker) return absl::OkStatus();
      return check_shards(1, "towers of a worker that go up");
    case ReductionAlgorithm::kPscpuPscpu:
      if (is_one_worker) return absl::OkStatus();
      return check_shards(topology.workers, "number of workers");
    case ReductionAlgorithm::kNccl:
    case ReductionAlgorithm::kHierarchicalCopy:
      if (is_one_worker) return absl::OkStatus();
      return refusal.Because("it reduces the towers of one worker",
                             "use an algorithm across workers, such as pscpu/pscpu or xring");
    case ReductionAlgorithm::kNcclRechd:
    case ReductionAlgorithm::kNcclPscpu:
    case ReductionAlgorithm::kRechd:
    case ReductionAlgorithm::kCollective:
    case ReductionAlgorithm::kReductionToOne:
    case ReductionAlgorithm::kGather:
      break;
  }
  return absl::OkStatus();
}

absl::Status CheckAllReduceSpec(const AllReduceSpec& spec, const Topology& topology,
                                bool has_gpus) {
  for (size_t i = 0; i < spec.ranges().size(); ++i) {
    const AllReduceRange& range = spec.ranges()[i];
    absl::Status status = CheckAlgorithm(range.algorithm, topology, range.shards);
    if (NeedsGpus(range.algorithm) && !has_gpus) {
      status = absl::InvalidArgumentError(absl::StrCat(
          Name(range.algorithm),
          " needs GPUs, got towers on CPUs. Remedy: use pscpu/pscpu, pscpu, xring or rechd"));
    }
    LOCKSTEP_RETURN_IF_ERROR(Annotate(status, absl::StrCat("all_reduce_spec, range ", i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReductionAlgorithm> ParseAllReduceAlgorithm(absl::string_view all_reduce_alg,
                                                           bool has_gpus) {
  if (all_reduce_alg == Name(ReductionAlgorithm::kHierarchicalCopy)) {
    return ReductionAlgorithm::kHierarchicalCopy;
  }
  if (all_reduce_alg != Name(ReductionAlgorithm::kNccl)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected \"nccl\" or \"hierarchical_copy\", got \"",
                     Printable(all_reduce_alg, kMostOfName), "\". Remedy: choose one of them"));
  }
  if (has_gpus) return ReductionAlgorithm::kNccl;
  return absl::InvalidArgumentError(
      "nccl needs GPUs, got towers on CPUs. Remedy: choose hierarchical_copy, or reduce to one "
      "device");
}

}  // namespace lockstep
