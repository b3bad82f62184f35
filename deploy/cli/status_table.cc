#include "deploy/cli/status_table.h"

#include <algorithm>
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

// "-" as long as there is no number yet.
std::string OrDash(bool known, const std::string& text) { return known ? text : "-"; }

std::string EvaluationText(const EvaluationSummary& evaluation) {
  return absl::StrCat("evaluation", evaluation.averages() ? " of the averages" : "", " at step ",
                      WithCommas(evaluation.step()), ": ",
                      evaluation.regression()
                          ? ""
                          : absl::StrCat("accuracy ", PercentText(evaluation.accuracy()), ", "),
                      "loss ", LossText(evaluation.loss()), "\n");
}

std::string CheckpointText(const JobStatus& job) {
  std::string text;
  if (!job.restored_from().empty()) {
    absl::StrAppend(&text, "restored from: ", Shown(job.restored_from()), "\n");
  }
  if (!job.last_checkpoint().empty()) {
    absl::StrAppend(&text, "checkpoint: ", Shown(job.last_checkpoint()), "\n");
  }
  if (!job.checkpoint_error().empty()) {
    absl::StrAppend(
        &text, "the newest checkpoint could not be written: ", Shown(job.checkpoint_error()), "\n");
  }
  return text;
}

// The log has all of them.
std::string WarningsText(const JobStatus& job) {
  constexpr int kShown = 3;
  std::string text;
  for (int i = std::max(0, job.warnings_size() - kShown); i < job.warnings_size(); ++i) {
    absl::StrAppend(&text, "warning: ", Shown(job.warnings(i).text()), "\n");
  }
  return text;
}

Rows WorkerRows(const JobStatus& job) {
  Rows rows = {{"worker", "address", "state", "heartbeat", "step", "examples", "accepted", "stale",
                "waiting for"}};
  const uint32_t per_gradient = job.variables_per_gradient();
  for (const MemberStatus& member : job.members()) {
    const bool known = member.state() != "absent";
    rows.push_back({absl::StrCat(member.worker()), Shown(member.address()), Shown(member.state()),
                    known ? SecondsText(member.seconds_since_heartbeat()) + " ago" : "never",
                    OrDash(known, WithCommas(member.local_step())),
                    OrDash(known, WithCommas(member.examples())),
                    OrDash(known, GradientCount(member.accepted(), per_gradient)),
                    OrDash(known, GradientCount(member.stale(), per_gradient)),
                    Shown(member.waiting_for())});
  }
  return rows;
}

bool HasCopies(const JobStatus& job) {
  return std::ranges::any_of(
      job.shards(), [](const ShardSummary& shard) { return !shard.serving_address().empty(); });
}

Rows ShardRows(const JobStatus& job) {
  const bool has_copies = HasCopies(job);
  Rows rows = {{"ps", "address", "state", "variables", "bytes", "closed steps"}};
  if (has_copies) rows.front().insert(rows.front().end(), {"shard served by", "copy at"});
  for (const ShardSummary& shard : job.shards()) {
    rows.push_back({absl::StrCat(shard.shard()), Shown(shard.address()), Shown(shard.state()),
                    WithCommas(shard.variables()),
                    OrDash(shard.bytes() > 0, BytesText(shard.bytes())),
                    WithCommas(shard.closed_steps())});
    if (!has_copies) continue;
    rows.back().push_back(Shown(shard.serving_address()));
    rows.back().push_back(OrDash(!shard.copy_address().empty(), Shown(shard.copy_address())));
  }
  return rows;
}

// Of shards that are lost with the next ps.
std::string LackingCopiesText(const JobStatus& job) {
  std::string text;
  for (const ShardSummary& shard : job.shards()) {
    if (shard.seconds_without_copy() == 0) continue;
    absl::StrAppend(&text, "warning: shard ", shard.shard(), " has had no copy for ",
                    SecondsText(shard.seconds_without_copy()), ": if ",
                    Shown(shard.serving_address()),
                    " is lost, the job goes back to its checkpoint\n");
  }
  return text;
}

std::string JobText(const ProcessStatus& status) {
  const JobStatus& job = status.job();
  const bool has_loss = status.global_step() > job.start_step();
  const bool has_rate = job.steps_per_second() > 0;
  return absl::StrCat(
      "job ", Shown(job.name()), ": step ", WithCommas(status.global_step()), " of ",
      WithCommas(job.max_steps()), ", loss ", OrDash(has_loss, LossText(job.loss())), ", ",
      OrDash(has_rate, RateText(job.steps_per_second())), " steps/s, ",
      OrDash(has_rate, RateText(job.examples_per_second())), " examples/s, ETA ",
      OrDash(has_rate, SecondsText(job.eta_seconds())),
      "\ngradients: ", GradientsText(job.accepted(), job.stale(), job.variables_per_gradient()),
      "; ", ModeText(job), "; last step ",
      OrDash(has_loss && job.seconds_since_step() > 0,
             SecondsText(job.seconds_since_step()) + " ago"),
      "\n", job.evaluations().empty() ? "" : EvaluationText(*job.evaluations().rbegin()),
      CheckpointText(job), WarningsText(job), LackingCopiesText(job), "\n",
      TextTable(WorkerRows(job)), "\n", TextTable(ShardRows(job)));
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

// "chief 0 (host:port) commands, lease 1.6 s of 2.0 s left".
std::string CommandText(const CommandSummary& command) {
  if (command.state() == "none") return "no chief has commanded yet";
  if (command.state() == "unknown") return "ps 0, which knows who commands, does not answer";
  const std::string chief = absl::StrCat(
      "chief ", command.chief(),
      command.address().empty() ? "" : absl::StrCat(" (", Shown(command.address()), ")"));
  if (command.state() != "held") {
    return absl::StrCat(chief, " commanded; its lease: ", Shown(command.state()));
  }
  if (command.lease_seconds() == 0) return absl::StrCat(chief, " commands");
  return absl::StrCat(chief, " commands, lease ", SecondsText(command.lease_left_seconds()), " of ",
                      SecondsText(command.lease_seconds()), " left");
}

std::string ShardText(const ShardStatus& shard) {
  std::string text =
      absl::StrCat("shard at step ", WithCommas(shard.shard_step()), ": ",
                   CountText(shard.variables(), "variable"), ", ", BytesText(shard.bytes()),
                   "; gradients held: ", BytesText(shard.held_bytes()),
                   "\ngradients of single variables: ", WithCommas(shard.accepted()), " accepted, ",
                   WithCommas(shard.stale()), " stale, ", WithCommas(shard.duplicates()),
                   " repeated, ", WithCommas(shard.rejected()),
                   " rejected; waiting: ", CountText(shard.waiting_pulls(), "pull"), ", ",
                   CountText(shard.waiting_dequeues(), "token request"), "\n");
  if (shard.has_command()) absl::StrAppend(&text, CommandText(shard.command()), "\n");
  if (!shard.staleness().empty()) absl::StrAppend(&text, StalenessText(shard), "\n");
  if (shard.pending().empty()) return text;
  Rows pending = {{"pending variable", "have", "required", "from workers"}};
  for (const VariableStatus& variable : shard.pending()) {
    pending.push_back({Shown(variable.name()), absl::StrCat(variable.have()),
                       absl::StrCat(variable.required()), absl::StrJoin(variable.from(), " ")});
  }
  return absl::StrCat(text, "\n", TextTable(pending));
}

std::string LocalSyncText(const LocalSyncStatus& load) {
  return absl::StrCat("load ", WithCommas(load.loads()), ": ", CountText(load.rows(), "row"),
                      " in batches of ", WithCommas(load.per_device_batch_size()),
                      " per tower, pass ", load.pass(), " of ", load.passes(), "; ",
                      WithCommas(load.bytes_to_towers()), " bytes to towers\n");
}

// How much of its time a worker's towers had no batch.
std::string WaitText(const WorkerStatus& worker) {
  if (worker.seconds_training() <= 0) return "";
  return absl::StrFormat("waited for data: %.3f s, %.2f %% of training\n",
                         worker.seconds_waiting_for_data(),
                         100 * worker.seconds_waiting_for_data() / worker.seconds_training());
}

std::string ReductionText(const WorkerStatus& worker) {
  if (worker.reduction().empty()) return "";
  return absl::StrCat("gradients are reduced by ", Shown(worker.reduction()), "\n");
}

// How a GPU's steps run.
std::string GraphsText(const GpuStatus& gpu) {
  if (gpu.training_steps() == 0) return "";
  const std::string why =
      gpu.graph_error().empty() ? "" : absl::StrCat(" (", Shown(gpu.graph_error()), ")");
  return absl::StrCat(", ", WithCommas(gpu.graph_steps()), " of ",
                      CountText(gpu.training_steps(), "step"), " as CUDA graphs", why);
}

// Which of cuDNN's engines compute its convolutions.
std::string EnginesText(const GpuStatus& gpu) {
  if (gpu.engines().empty()) return "";
  const auto append = [](std::string* out, const EngineStatus& engine) {
    absl::StrAppend(out, engine.engine(), " (", engine.convolutions(), ")");
  };
  return absl::StrCat(", convolutions by cuDNN's engines ",
                      absl::StrJoin(gpu.engines(), ", ", append));
}

std::string GpusText(const WorkerStatus& worker) {
  std::string text;
  for (const GpuStatus& gpu : worker.gpus()) {
    absl::StrAppend(
        &text, Shown(gpu.name()), ": ", BytesText(gpu.memory_bytes()), " of ",
        BytesText(gpu.memory_limit_bytes()), " in use, ", BytesText(gpu.bytes_to_device()),
        " copied to it, ", BytesText(gpu.bytes_to_host()), " from it",
        gpu.has_utilization_percent() ? absl::StrCat(", ", gpu.utilization_percent(), " % busy")
                                      : "",
        GraphsText(gpu), EnginesText(gpu), "\n");
  }
  return text;
}

std::string WorkerText(const WorkerStatus& worker) {
  const bool has_trained = worker.examples() > 0 || worker.loss() != 0;
  return absl::StrCat("worker at step ", WithCommas(worker.local_step()), ": loss ",
                      OrDash(has_trained, LossText(worker.loss())), ", ",
                      OrDash(has_trained, RateText(worker.examples_per_second())), " examples/s, ",
                      CountText(worker.examples(), "example"), ", ",
                      CountText(worker.towers(), "tower"), " on ", Shown(worker.device()),
                      "\ngradients of single variables: ", WithCommas(worker.accepted()),
                      " accepted, ", WithCommas(worker.stale()), " stale\n", GpusText(worker),
                      ReductionText(worker), WaitText(worker),
                      worker.has_local_sync() ? LocalSyncText(worker.local_sync()) : "");
}

}  // namespace

std::string StatusTable(const ProcessStatus& status) {
  std::string text = absl::StrCat(
      Shown(status.role()), " ", status.task(), ": ", StateText(status), "\nlockstep ",
      Shown(status.version()), " on ", Shown(status.host()), ", pid ", status.pid(), ", up ",
      SecondsText(status.uptime_seconds()), ", step ", WithCommas(status.global_step()), "\n");
  if (status.has_job()) absl::StrAppend(&text, JobText(status));
  if (status.has_shard()) absl::StrAppend(&text, ShardText(status.shard()));
  if (status.has_standby_of()) absl::StrAppend(&text, CommandText(status.standby_of()), "\n");
  if (status.has_worker()) absl::StrAppend(&text, WorkerText(status.worker()));
  return text;
}

}  // namespace lockstep::deploy
