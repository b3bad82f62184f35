// Of jobs whose workers come and go: sync.min_replicas.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"
#include "common/replicas/fitting_replicas.h"

namespace lockstep {
namespace {

constexpr char kMinReplicas[] = "sync.min_replicas";

absl::Status NotWith(absl::string_view field, absl::string_view why) {
  return Broken(kMinReplicas, absl::StrCat("it cannot be used with ", field, ": ", why),
                absl::StrCat("remove ", field, ", or min_replicas"));
}

}  // namespace

absl::Status CheckMinReplicas(const JobDef& job) {
  const SyncDef& sync = job.sync();
  if (!sync.has_min_replicas()) return absl::OkStatus();
  if (sync.has_asynchronous()) {
    return NotWith("sync.asynchronous", "its workers share no batch, and may come and go anyway");
  }
  if (sync.token_policy() == FIFO) {
    return NotWith("sync.token_policy: FIFO", "a token would have to name a worker's share");
  }
  if (job.strategy().has_replicated()) {
    return NotWith("strategy.replicated", "every worker of the cluster spec has the variables");
  }
  if (job.has_local_sync()) return NotWith("local_sync", "workers load rows for many steps");
  if (!job.data().transform().empty()) {
    return NotWith("data.transform", "each worker has a stream of its own");
  }
  if (job.data().auto_shard() != DataDef::RECORD) {
    return NotWith("data.auto_shard", "the examples of a step must be known to every worker");
  }
  if (job.global_batch() == 0) {
    return Broken(kMinReplicas,
                  "the global batch stays when workers come and go, and batch_per_tower would "
                  "change it",
                  "give global_batch in place of batch_per_tower");
  }
  const int64_t least = sync.min_replicas();
  if (!FittingReplicas(job.global_batch(), TowersOf(job), least).empty()) return absl::OkStatus();
  const bool is_divisible = job.global_batch() % TowersOf(job) == 0;
  return Broken(
      kMinReplicas,
      absl::StrCat("a global_batch of ", job.global_batch(), " with ", TowersOf(job),
                   " towers per worker divides over no number of workers from ", least, " on"),
      is_divisible
          ? absl::StrCat("use at most ", job.global_batch() / TowersOf(job))
          : absl::StrCat("use a global_batch that is a multiple of ", least * TowersOf(job)));
}

absl::Status FillLargestBatch(JobDef* job, int64_t num_workers) {
  const int64_t least = job->sync().min_replicas();
  if (MostFittingReplicas(job->global_batch(), TowersOf(*job), least, num_workers) == 0) {
    return Broken(
        kMinReplicas,
        absl::StrCat("with the ", num_workers, " workers of the cluster spec, a global_batch of ",
                     job->global_batch(), " divides over no number of workers from ", least, " on"),
        "add workers to the cluster spec (for lockstep up: local.workers), or lower min_replicas");
  }
  const int64_t fewest = FittingReplicas(job->global_batch(), TowersOf(*job), least).front();
  job->set_batch_per_tower(job->global_batch() / (fewest * TowersOf(*job)));
  return absl::OkStatus();
}

}  // namespace lockstep
