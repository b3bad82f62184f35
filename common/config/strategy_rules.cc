#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"
#include "common/reduction/check_algorithm.h"

namespace lockstep {
namespace {

using Replicated = StrategyDef::Replicated;

constexpr char kReplicated[] = "strategy.replicated";
constexpr char kMode[] = "strategy.replicated.mode";
constexpr char kOps[] = "strategy.replicated.cross_tower_ops";
constexpr char kSpec[] = "strategy.replicated.cross_tower_ops.multi_worker_all_reduce";
constexpr char kOpsOfGpus[] = "strategy.parameter_server.cross_tower_ops";
constexpr int64_t kHierarchicalTowers = 8;

absl::Status Conflict(absl::string_view field, absl::string_view why) {
  return Broken(field, absl::StrCat("with strategy { replicated {} } ", why),
                absl::StrCat("remove it, or ", kReplicated));
}

absl::Status CheckSyncOfReplicated(const SyncDef& sync) {
  if (sync.has_asynchronous()) {
    return Conflict("sync.asynchronous", "all workers apply the same sum of every step");
  }
  if (sync.token_policy() == FIFO) {
    return Conflict("sync.token_policy", "each worker has a token of its own, not a queue (FIFO)");
  }
  return absl::OkStatus();
}

absl::Status CheckMode(const Replicated& replicated, int64_t towers) {
  if (replicated.has_cross_tower_ops() && replicated.mode() != Replicated::MODE_UNSPECIFIED) {
    return Broken(kMode, "cross_tower_ops stands in its place", "keep one of the two");
  }
  if (replicated.mode() == Replicated::NCCL) {
    return Broken(kMode, "NCCL needs GPUs, and replicated towers are reduced on the host",
                  "use CPU, GPU or COLLECTIVE, or leave it out");
  }
  if (replicated.mode() != Replicated::HIERARCHICAL || towers == kHierarchicalTowers) {
    return absl::OkStatus();
  }
  return Broken(
      kMode, absl::StrCat("HIERARCHICAL: expected ", kHierarchicalTowers, " towers, got ", towers),
      absl::StrCat("set towers: ", kHierarchicalTowers, ", or use another mode"));
}

// `ops` is the path of the cross_tower_ops, `has_gpus` whether they reduce on GPUs.
absl::Status CheckAlgorithmOf(const CrossTowerOpsDef::AllReduce& all_reduce, absl::string_view ops,
                              bool has_gpus) {
  const std::string& given = all_reduce.all_reduce_alg();
  const absl::string_view name = given.empty() ? Name(ReductionAlgorithm::kNccl) : given;
  return Annotate(ParseAllReduceAlgorithm(name, has_gpus).status(),
                  absl::StrCat(ops, ".all_reduce.all_reduce_alg"));
}

// TensorFlow's default where the job says nothing.
absl::StatusOr<AllReduceSpec> SpecOf(const CrossTowerOpsDef::MultiWorkerAllReduce& all_reduce) {
  const std::string& given = all_reduce.all_reduce_spec();
  return given.empty() ? AllReduceSpec() : AllReduceSpec::Parse(given);
}

// These reduce on the host, also the towers of GPUs.
absl::Status CheckOps(const CrossTowerOpsDef& ops) {
  switch (ops.kind_case()) {
    case CrossTowerOpsDef::kAllReduce:
      return CheckAlgorithmOf(ops.all_reduce(), kOps, /*has_gpus=*/false);
    case CrossTowerOpsDef::kMultiWorkerAllReduce:
      return Annotate(SpecOf(ops.multi_worker_all_reduce()).status(), kSpec);
    case CrossTowerOpsDef::KIND_NOT_SET:
      return Broken(kOps, "it names no op",
                    "write reduction_to_one_device {}, all_reduce {}, multi_worker_all_reduce {} "
                    "or collective_all_reduce {}");
    default:
      return absl::OkStatus();
  }
}

// Those of a parameter_server: the worker's first GPU pushes what all have computed.
absl::Status CheckOpsOfGpus(const CrossTowerOpsDef& ops) {
  constexpr absl::string_view kRemedy = "write reduction_to_one_device {} or all_reduce {}";
  switch (ops.kind_case()) {
    case CrossTowerOpsDef::kReductionToOneDevice: {
      const int64_t device = ops.reduction_to_one_device().reduce_to_device();
      if (device == 0) return absl::OkStatus();
      return Broken(absl::StrCat(kOpsOfGpus, ".reduction_to_one_device.reduce_to_device"),
                    absl::StrCat("expected 0, the GPU that pushes, got ", device), "remove it");
    }
    case CrossTowerOpsDef::kAllReduce: {
      LOCKSTEP_RETURN_IF_ERROR(CheckAlgorithmOf(ops.all_reduce(), kOpsOfGpus, /*has_gpus=*/true));
      if (!ops.all_reduce().has_packing()) return absl::OkStatus();
      return Broken(absl::StrCat(kOpsOfGpus, ".all_reduce.packing"),
                    "each gradient is reduced as soon as it is there", "remove it");
    }
    default:
      return Broken(kOpsOfGpus, "it names no op that reduces to one GPU", kRemedy);
  }
}

// tensorpack's modes and TensorFlow's all_reduce reduce the towers of one worker.
absl::Status CheckOneWorker(const Replicated& replicated, int64_t num_workers) {
  const bool is_for_one = replicated.mode() != Replicated::MODE_UNSPECIFIED &&
                          replicated.mode() != Replicated::COLLECTIVE;
  const bool names_all_reduce = replicated.cross_tower_ops().has_all_reduce();
  if (num_workers == 1 || !(is_for_one || names_all_reduce)) return absl::OkStatus();
  return Broken(is_for_one ? kMode : absl::StrCat(kOps, ".all_reduce"),
                absl::StrCat(is_for_one ? Replicated::Mode_Name(replicated.mode()) : "it",
                             " reduces the towers of one worker, and there are ", num_workers),
                "use mode: COLLECTIVE, or cross_tower_ops { multi_worker_all_reduce {} }");
}

absl::Status CheckRoot(const JobDef& job, int64_t num_workers) {
  const CrossTowerOpsDef& ops = job.strategy().replicated().cross_tower_ops();
  const int64_t root = ops.reduction_to_one_device().reduce_to_device();
  const int64_t towers = num_workers * TowersOf(job);
  if (root >= 0 && root < towers) return absl::OkStatus();
  return Broken(absl::StrCat(kOps, ".reduction_to_one_device.reduce_to_device"),
                absl::StrCat("expected 0 to ", towers - 1, ", one of all towers, got ", root),
                "lower it, or remove it for 0");
}

absl::Status CheckSpec(const JobDef& job, int64_t num_workers) {
  const CrossTowerOpsDef& ops = job.strategy().replicated().cross_tower_ops();
  if (!ops.has_multi_worker_all_reduce()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const AllReduceSpec spec, SpecOf(ops.multi_worker_all_reduce()));
  const Topology topology{.workers = static_cast<int>(num_workers),
                          .towers = static_cast<int>(TowersOf(job))};
  return Annotate(CheckAllReduceSpec(spec, topology, /*has_gpus=*/false), kSpec);
}

}  // namespace

absl::Status CheckStrategy(const JobDef& job) {
  if (job.sync().has_asynchronous() &&
      job.strategy().parameter_server().ps_device() == StrategyDef::ParameterServer::GPU) {
    return Broken("strategy.parameter_server.ps_device",
                  "with sync { asynchronous {} } every tower pushes by itself: nothing is merged",
                  "remove it, or sync.asynchronous");
  }
  if (job.strategy().parameter_server().has_cross_tower_ops()) {
    if (job.sync().has_asynchronous()) {
      return Broken(
          kOpsOfGpus,
          "with sync { asynchronous {} } every tower pushes by itself: nothing is reduced",
          "remove it, or sync.asynchronous");
    }
    return CheckOpsOfGpus(job.strategy().parameter_server().cross_tower_ops());
  }
  if (!job.strategy().has_replicated()) return absl::OkStatus();
  const Replicated& replicated = job.strategy().replicated();
  LOCKSTEP_RETURN_IF_ERROR(CheckSyncOfReplicated(job.sync()));
  const DataType type = job.transport().wire_type();
  if (type == BFLOAT16 || type == FLOAT16) {
    return Conflict("transport.wire_type", "the workers' sums travel as they are: float32");
  }
  if (job.batch_norm_updates() != JobDef::BATCH_NORM_UPDATES_UNSPECIFIED) {
    return Conflict("batch_norm_updates", "every tower has statistics of its own");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckMode(replicated, job.towers()));
  if (!replicated.has_cross_tower_ops()) return absl::OkStatus();
  return CheckOps(replicated.cross_tower_ops());
}

absl::Status CheckStrategy(const JobDef& job, int64_t num_workers) {
  if (!job.strategy().has_replicated()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckOneWorker(job.strategy().replicated(), num_workers));
  LOCKSTEP_RETURN_IF_ERROR(CheckRoot(job, num_workers));
  LOCKSTEP_RETURN_IF_ERROR(CheckSpec(job, num_workers));
  if (job.sync().replicas_to_aggregate() == num_workers) return absl::OkStatus();
  return Broken(
      "sync.replicas_to_aggregate",
      absl::StrCat("with strategy { replicated {} } every worker takes part in every step: "
                   "expected ",
                   num_workers, ", the number of workers, got ",
                   job.sync().replicas_to_aggregate()),
      "remove it");
}

}  // namespace lockstep
