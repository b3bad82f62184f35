#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/config/job.h"
#include "common/config/job_rules.h"
#include "common/config/load_schedule_of.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

// Stands for replicas_to_aggregate, as in TensorFlow.
constexpr int64_t kDefaultTokens = -1;

absl::Status FillReplicas(SyncDef* sync, int64_t num_workers) {
  // Where workers come and go the default follows their number.
  if (sync->has_asynchronous() || sync->has_min_replicas()) return absl::OkStatus();
  if (!sync->has_replicas_to_aggregate()) sync->set_replicas_to_aggregate(num_workers);
  const int64_t needed = sync->replicas_to_aggregate();
  if (sync->token_policy() == FIFO || needed <= num_workers) return absl::OkStatus();
  return Broken(
      "sync.replicas_to_aggregate",
      absl::StrCat("expected at most ", num_workers, ", the number of workers, got ", needed),
      "lower it, or add workers to the cluster spec (for lockstep up: local.workers)");
}

// TensorFlow's rule: with fewer tokens the first step could never close.
absl::Status FillTokens(SyncDef* sync, int64_t num_workers) {
  if (sync->has_asynchronous() || sync->token_policy() != FIFO) return absl::OkStatus();
  const int64_t needed = sync->replicas_to_aggregate();
  if (!sync->has_init_tokens() || sync->init_tokens() == kDefaultTokens) {
    sync->set_init_tokens(needed);
  }
  if (sync->init_tokens() >= needed - num_workers) return absl::OkStatus();
  return Broken(
      "sync.init_tokens",
      absl::StrCat("expected at least ", needed - num_workers, " (replicas_to_aggregate: ", needed,
                   " minus ", CountText(num_workers, "worker"), "), got ", sync->init_tokens()),
      "raise it, or leave it out");
}

absl::Status FillBatch(JobDef* job, int64_t num_workers) {
  const int64_t towers = num_workers * TowersOf(*job);
  if (job->has_local_sync()) {
    // Of a full load: how many examples there are, and how long, is not known yet.
    LOCKSTEP_ASSIGN_OR_RETURN(const LoadSchedule schedule,
                              LoadScheduleOf(*job, job->local_sync().load(), 1, num_workers));
    job->set_batch_per_tower(schedule.plan(0).sequences_per_batch());
    job->set_global_batch(towers * job->batch_per_tower());
    return absl::OkStatus();
  }
  if (job->global_batch() == 0) {
    job->set_global_batch(towers * job->batch_per_tower());
    return absl::OkStatus();
  }
  if (job->global_batch() % towers != 0) {
    return Broken(
        "global_batch",
        absl::StrCat("expected a multiple of ", towers, " (", CountText(num_workers, "worker"),
                     " of ", CountText(towers / num_workers, "tower"), "), got ",
                     job->global_batch()),
        absl::StrCat("use ", (job->global_batch() / towers + 1) * towers));
  }
  job->set_batch_per_tower(job->global_batch() / towers);
  return absl::OkStatus();
}

absl::Status CheckAsynchronous(const SyncDef& sync) {
  const auto conflict = [](absl::string_view field, absl::string_view why) {
    return Broken(absl::StrCat("sync.", field), absl::StrCat("an asynchronous job ", why),
                  "remove it, or asynchronous");
  };
  if (sync.has_replicas_to_aggregate()) {
    return conflict("replicas_to_aggregate", "applies each gradient by itself");
  }
  if (sync.token_policy() != PER_REPLICA) return conflict("token_policy", "has no tokens");
  if (sync.has_init_tokens()) return conflict("init_tokens", "has no tokens");
  if (sync.quorum_policy() != WAIT) {
    return conflict("quorum_policy", "goes on as long as one worker lives");
  }
  return absl::OkStatus();
}

// Every example of every step has a number.
absl::Status CheckExamples(const JobDef& job) {
  if (CheckedMultiply(job.max_steps(), job.global_batch()).has_value()) return absl::OkStatus();
  return Broken("max_steps",
                absl::StrCat(job.max_steps(), " steps of ", job.global_batch(),
                             " examples are more than 2^63 examples"),
                "lower it: 1000000000 steps of a millisecond take 11 days");
}

}  // namespace

int64_t TowersOf(const JobDef& job) { return std::max<int64_t>(1, job.towers()); }

absl::Status CheckSync(const SyncDef& sync) {
  if (sync.has_asynchronous()) return CheckAsynchronous(sync);
  if (sync.token_policy() == FIFO && sync.quorum_policy() == SHRINK) {
    return Broken("sync.quorum_policy",
                  "SHRINK counts replicas, and under FIFO one may push several times in a step",
                  "use WAIT or ABORT, or remove token_policy: FIFO");
  }
  if (sync.has_init_tokens() && sync.token_policy() != FIFO) {
    return Broken("sync.init_tokens", "only FIFO has tokens to begin with",
                  "remove it, or set token_policy: FIFO");
  }
  return absl::OkStatus();
}

// What a copy would have to know beyond the mean gradients of its primary.
absl::Status CheckPsReplicas(const JobDef& job) {
  const SyncDef& sync = job.sync();
  if (sync.ps_replicas() == 0) return absl::OkStatus();
  const auto conflict = [](absl::string_view field, absl::string_view why) {
    return Broken("sync.ps_replicas", absl::StrCat("it cannot be used with ", field, ": ", why),
                  absl::StrCat("remove ", field, ", or ps_replicas"));
  };
  if (sync.has_asynchronous()) {
    return conflict("sync.asynchronous", "a copy would have to follow every single gradient");
  }
  if (sync.token_policy() == FIFO) {
    return conflict("sync.token_policy: FIFO", "the tokens in the queue have no copy");
  }
  if (sync.has_min_replicas()) {
    return conflict("sync.min_replicas", "the replica views have no copy");
  }
  if (job.strategy().has_replicated()) {
    return conflict("strategy.replicated", "the workers have the variables themselves");
  }
  return absl::OkStatus();
}

absl::Status ValidateJob(JobDef* job, int64_t num_workers) {
  LOCKSTEP_RETURN_IF_ERROR(CheckCount("workers", num_workers, 1, limits::kMaxTasks));
  LOCKSTEP_RETURN_IF_ERROR(FillReplicas(job->mutable_sync(), num_workers));
  LOCKSTEP_RETURN_IF_ERROR(CheckStrategy(*job, num_workers));
  LOCKSTEP_RETURN_IF_ERROR(FillTokens(job->mutable_sync(), num_workers));
  LOCKSTEP_RETURN_IF_ERROR(CheckFileShards(job->data(), num_workers));
  LOCKSTEP_RETURN_IF_ERROR(job->sync().has_min_replicas() ? FillLargestBatch(job, num_workers)
                                                          : FillBatch(job, num_workers));
  return CheckExamples(*job);
}

}  // namespace lockstep
