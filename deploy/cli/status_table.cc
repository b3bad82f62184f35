#include "deploy/cli/status_table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/quantity.h"
#include "deploy/cli/state_text.h"
#include "deploy/cli/text_table.h"

namespace lockstep::deploy {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string ModeText(const JobStatus& job) {
  if (job.asynchronous()) return "asynchronous, each gradient is a step";
  return absl::StrCat(
      job.replicas_to_aggregate(), " of ", job.total_num_replicas(), " replicas per step",
      job.required_now() < job.replicas_to_aggregate() ? absl::StrCat(", now ", job.required_now())
                                                       : "");
}

std::string JobText(const ProcessStatus& status) {
  const JobStatus& job = status.job();
  std::string text =
      absl::StrFormat("job %s: step %s of %s, loss %.4f, %s steps/s, %s examples/s, ETA %s\n",
                      Shown(job.name()), WithCommas(status.global_step()),
                      WithCommas(job.max_steps()), job.loss(), RateText(job.steps_per_second()),
                      RateText(job.examples_per_second()), SecondsText(job.eta_seconds()));
  absl::StrAppend(&text, "gradients: ", WithCommas(job.accepted()), " accepted, ",
                  WithCommas(job.stale()), " stale; ", ModeText(job), "; last step ",
                  SecondsText(job.seconds_since_step()), " ago\n");
  if (!job.evaluations().empty()) {
    const EvaluationSummary& last = *job.evaluations().rbegin();
    absl::StrAppend(&text,
                    absl::StrFormat("evaluation at step %s: accuracy %.2f %%, loss %.4f\n",
                                    WithCommas(last.step()), 100 * last.accuracy(), last.loss()));
  }
  if (!job.last_checkpoint().empty()) {
    absl::StrAppend(&text, "checkpoint: ", Shown(job.last_checkpoint()), "\n");
  }
  Rows workers = {{"worker", "address", "state", "heartbeat", "step", "examples", "accepted",
                   "stale", "waiting for"}};
  for (const MemberStatus& member : job.members()) {
    const bool known = member.state() != "absent";
    workers.push_back(
        {absl::StrCat(member.worker()), Shown(member.address()), Shown(member.state()),
         known ? SecondsText(member.seconds_since_heartbeat()) + " ago" : "never",
         absl::StrCat(member.local_step()), WithCommas(member.examples()),
         WithCommas(member.accepted()), WithCommas(member.stale()), Shown(member.waiting_for())});
  }
  Rows shards = {{"ps", "address", "state", "variables", "bytes", "closed steps"}};
  for (const ShardSummary& shard : job.shards()) {
    shards.push_back({absl::StrCat(shard.shard()), Shown(shard.address()), Shown(shard.state()),
                      absl::StrCat(shard.variables()), BytesText(shard.bytes()),
                      WithCommas(shard.closed_steps())});
  }
  return absl::StrCat(text, "\n", TextTable(workers), "\n", TextTable(shards));
}

// "staleness 0: 12, 1: 3, 2-3: 1".
std::string StalenessText(const ShardStatus& shard) {
  std::vector<std::string> buckets;
  uint64_t least = 0;
  for (const uint64_t count : shard.staleness()) {
    const uint64_t next = least == 0 ? 1 : 2 * least;
    buckets.push_back(absl::StrCat(least, next - least > 1 ? absl::StrCat("-", next - 1) : "", ": ",
                                   WithCommas(count)));
    least = next;
  }
  return absl::StrCat("staleness ", absl::StrJoin(buckets, ", "));
}

std::string ShardText(const ShardStatus& shard) {
  std::string text = absl::StrCat(
      "shard at step ", WithCommas(shard.shard_step()), ": ", shard.variables(), " variables, ",
      BytesText(shard.bytes()), "; gradients held: ", BytesText(shard.held_bytes()),
      "\ngradients: ", WithCommas(shard.accepted()), " accepted, ", WithCommas(shard.stale()),
      " stale, ", WithCommas(shard.duplicates()), " repeated, ", WithCommas(shard.rejected()),
      " rejected; waiting: ", shard.waiting_pulls(), " pulls, ", shard.waiting_dequeues(),
      " token requests\n");
  if (!shard.staleness().empty()) absl::StrAppend(&text, StalenessText(shard), "\n");
  if (shard.pending().empty()) return text;
  Rows pending = {{"pending variable", "have", "required", "from workers"}};
  for (const VariableStatus& variable : shard.pending()) {
    pending.push_back({Shown(variable.name()), absl::StrCat(variable.have()),
                       absl::StrCat(variable.required()), absl::StrJoin(variable.from(), " ")});
  }
  return absl::StrCat(text, "\n", TextTable(pending));
}

std::string WorkerText(const WorkerStatus& worker) {
  return absl::StrCat("worker at step ", WithCommas(worker.local_step()), ": ",
                      absl::StrFormat("loss %.4f, ", worker.loss()),
                      RateText(worker.examples_per_second()), " examples/s, ",
                      WithCommas(worker.examples()), " examples, ", worker.towers(),
                      worker.towers() == 1 ? " tower on " : " towers on ", Shown(worker.device()),
                      "\ngradients: ", WithCommas(worker.accepted()), " accepted, ",
                      WithCommas(worker.stale()), " stale\n");
}

}  // namespace

std::string StatusTable(const ProcessStatus& status) {
  std::string text = absl::StrCat(
      Shown(status.role()), " ", status.task(), ": ", StateText(status), "\nlockstep ",
      Shown(status.version()), " on ", Shown(status.host()), ", pid ", status.pid(), ", up ",
      SecondsText(status.uptime_seconds()), ", step ", WithCommas(status.global_step()), "\n");
  if (status.has_job()) absl::StrAppend(&text, JobText(status));
  if (status.has_shard()) absl::StrAppend(&text, ShardText(status.shard()));
  if (status.has_worker()) absl::StrAppend(&text, WorkerText(status.worker()));
  return text;
}

}  // namespace lockstep::deploy
