// What a job run tells about itself.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "chief/membership/describe.h"
#include "chief/service/job_run.h"
#include "chief/service/summary.h"

namespace lockstep::chief {

std::string JobRun::State(absl::Duration now) const {
  switch (phase_) {
    case Phase::kBringingUp:
    case Phase::kGathering:
      return "starting";
    case Phase::kTraining:
      return MustWait(now) ? "waiting" : "training";
    case Phase::kCompleting:
      if (stall_reminder_.IsSilent(now)) return "waiting";
      return IsSaving() ? "saving" : "evaluating";
    case Phase::kSaving:
      return "saving";
    case Phase::kTelling:
    case Phase::kReleasing:
    case Phase::kOver:
      return "done";
  }
  return "";
}

std::string JobRun::WaitingFor(absl::Duration now) const {
  switch (phase_) {
    case Phase::kBringingUp:
    case Phase::kGathering:
      return StartWaitsFor();
    case Phase::kTraining:
      return MustWait(now) ? TrainingWaitsFor(now) : "";
    case Phase::kCompleting:
      return stall_reminder_.IsSilent(now) ? CompletingWaitsFor(now) : "";
    case Phase::kSaving:
      return SavingWaitsFor();
    case Phase::kTelling:
    case Phase::kReleasing:
    case Phase::kOver:
      return "";
  }
  return "";
}

std::string JobRun::CompletingWaitsFor(absl::Duration now) const {
  const std::string duration = absl::StrCat(" for ", Seconds(stall_reminder_.Silence(now)));
  const Evaluation* running = evaluator_.has_value() ? evaluator_->running() : nullptr;
  std::string checkpoint = IsSaving() ? "the checkpoint to be written" : "";
  if (!record_.save_error.empty()) absl::StrAppend(&checkpoint, " (", record_.save_error, ")");
  if (running == nullptr) return checkpoint + duration;
  return absl::StrCat(checkpoint, checkpoint.empty() ? "" : " and ", "the evaluation of step ",
                      running->version().value(), duration, ": ", running->ranges_done(), " of ",
                      running->ranges(), " ranges are done; ", DescribeAll(membership_, now));
}

std::string JobRun::SavingWaitsFor() const {
  if (drain_.has_value()) return drain_->DescribeWaiting();
  return "the checkpoint before it is being written";
}

// Whether the step is known, or long enough silent to be said, not to close as things are.
bool JobRun::MustWait(absl::Duration now) const {
  return stall_reminder_.IsSilent(now) || quorum_.possible < steps_->required();
}

std::string JobRun::DescribeNeed() const {
  const uint32_t required = steps_->required();
  std::string text = absl::StrCat("it needs ", required, required == 1 ? " gradient" : " gradients",
                                  " of each variable");
  if (!quorum_.is_short) return text;
  return absl::StrCat(
      text, ", and ",
      quorum_rules_.counts_stamps
          ? absl::StrCat("at most ", quorum_.possible, " with its stamp can exist")
          : absl::StrCat(quorum_.possible, quorum_.possible == 1 ? " worker lives and has data"
                                                                 : " workers live and have data"));
}

std::string JobRun::TrainingWaitsFor(absl::Duration now) const {
  std::string text = absl::StrCat("step ", record_.global_step.value(), " for ",
                                  Seconds(stall_reminder_.Silence(now)), ": ", DescribeNeed(), "; ",
                                  DescribeAll(membership_, now));
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    const ShardProgress& progress = steps_->shards()[shard];
    if (!progress.problem.ok()) {
      absl::StrAppend(&text, "; ", progress.problem.message(), ", for ",
                      Seconds(now - progress.problem_since));
    } else if (progress.step == record_.global_step) {
      absl::StrAppend(&text, "; ", shard_names_[shard], " has not closed the step");
    }
  }
  if (!pending_at_ps_.empty()) absl::StrAppend(&text, "; ", pending_at_ps_);
  return text;
}

void JobRun::FillStatus(ProcessStatus* status) const {
  const absl::Duration now = clock_->Monotonic();
  status->set_state(State(now));
  status->set_waiting_for(WaitingFor(now));
  status->set_global_step(record_.global_step.value());

  JobStatus* job = status->mutable_job();
  job->set_name(plan_.job.name());
  job->set_max_steps(plan_.max_steps.value());
  job->set_loss(record_.loss);
  const double rate = phase_ == Phase::kTraining ? record_.rate.StepsPerSecond(now) : 0;
  job->set_steps_per_second(rate);
  const uint32_t required = steps_.has_value() ? steps_->required() : plan_.required();
  job->set_examples_per_second(rate * static_cast<double>(plan_.examples_per_step()) /
                               plan_.required() * required);
  job->set_accepted(record_.accepted);
  job->set_stale(record_.stale);
  job->set_replicas_to_aggregate(plan_.required());
  job->set_asynchronous(plan_.asynchronous());
  job->set_required_now(required);
  job->set_total_num_replicas(static_cast<uint32_t>(plan_.cluster.workers.size()));
  job->set_last_checkpoint(record_.checkpoint);
  job->set_restored_from(record_.restored_from);
  job->set_checkpoint_error(record_.save_error);
  const int64_t left = plan_.max_steps.value() - record_.global_step.value();
  job->set_eta_seconds(rate > 0 ? static_cast<double>(left) / rate : 0);
  if (phase_ == Phase::kTraining) {
    job->set_seconds_since_step(absl::ToDoubleSeconds(now - record_.last_commit));
  }

  for (size_t i = 0; i < membership_.members().size(); ++i) {
    const MemberRecord& record = membership_.members()[i];
    MemberStatus* member = job->add_members();
    member->set_worker(static_cast<uint32_t>(i));
    member->set_address(record.address);
    member->set_state(std::string(Name(record.state)));
    if (record.state != MemberState::kAbsent) {
      member->set_seconds_since_heartbeat(absl::ToDoubleSeconds(now - record.last_heard));
    }
    member->set_local_step(record.report.local_step.value());
    member->set_waiting_for(record.report.waiting_for);
    member->set_examples(record.report.examples);
    member->set_accepted(record.report.accepted);
    member->set_stale(record.report.stale);
    member->set_host(record.host);
    member->set_pid(record.pid);
  }

  for (size_t i = 0; i < shards_.size(); ++i) {
    ShardSummary* shard = job->add_shards();
    shard->set_shard(static_cast<uint32_t>(i));
    shard->set_address(plan_.cluster.ps[i]);
    const bool ready = phase_ != Phase::kBringingUp && !brought_up_.bytes.empty();
    if (ready) shard->set_bytes(static_cast<uint64_t>(brought_up_.bytes[i]));
    const ShardProgress* progress = steps_.has_value() ? &steps_->shards()[i] : nullptr;
    if (progress != nullptr) shard->set_closed_steps(progress->step.value());
    const bool reached = progress == nullptr || progress->problem.ok();
    shard->set_state(ready && reached ? "ready" : "unreachable");
  }
  for (const VariableSpec& variable : plan_.placement.variables()) {
    ShardSummary* shard = job->mutable_shards(static_cast<int>(variable.shard()));
    shard->set_variables(shard->variables() + 1);
  }

  for (const EvaluationTotals& totals : record_.evaluations) {
    *job->add_evaluations() = ToStatus(plan_, totals);
  }
}

}  // namespace lockstep::chief
