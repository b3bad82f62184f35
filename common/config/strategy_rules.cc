#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

constexpr char kReplicated[] = "strategy.replicated";

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

}  // namespace

absl::Status CheckStrategy(const JobDef& job) {
  if (job.sync().has_asynchronous() &&
      job.strategy().parameter_server().ps_device() == StrategyDef::ParameterServer::GPU) {
    return Broken("strategy.parameter_server.ps_device",
                  "with sync { asynchronous {} } every tower pushes by itself: nothing is merged",
                  "remove it, or sync.asynchronous");
  }
  if (!job.strategy().has_replicated()) return absl::OkStatus();
  const StrategyDef::Replicated& replicated = job.strategy().replicated();
  LOCKSTEP_RETURN_IF_ERROR(CheckSyncOfReplicated(job.sync()));
  const DataType type = job.transport().wire_type();
  if (type == BFLOAT16 || type == FLOAT16) {
    return Conflict("transport.wire_type", "the workers' sums travel as they are: float32");
  }
  if (job.batch_norm_updates() != JobDef::BATCH_NORM_UPDATES_UNSPECIFIED) {
    return Conflict("batch_norm_updates", "every tower has statistics of its own");
  }
  if (replicated.has_cross_tower_ops() &&
      replicated.mode() != StrategyDef::Replicated::MODE_UNSPECIFIED) {
    return Broken(absl::StrCat(kReplicated, ".mode"), "cross_tower_ops stands in its place",
                  "keep one of the two");
  }
  if (replicated.has_cross_tower_ops() &&
      replicated.cross_tower_ops().kind_case() == CrossTowerOpsDef::KIND_NOT_SET) {
    return Broken(absl::StrCat(kReplicated, ".cross_tower_ops"), "it names no op",
                  "write reduction_to_one_device {}, all_reduce {}, multi_worker_all_reduce {} or "
                  "collective_all_reduce {}");
  }
  return absl::OkStatus();
}

absl::Status CheckStrategy(const JobDef& job, int64_t num_workers) {
  if (!job.strategy().has_replicated()) return absl::OkStatus();
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
