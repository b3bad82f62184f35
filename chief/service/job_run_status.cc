// What a job run tells about itself.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/membership/describe.h"
#include "chief/service/job_run.h"
#include "chief/service/summary.h"
#include "common/base/quantity.h"

namespace lockstep::chief {

std::string JobRun::State(absl::Duration now) const {
  switch (phase_) {
    case Phase::kInitializing:
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
    case Phase::kInitializing:
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
  const std::string duration = absl::StrCat(" for ", DurationText(stall_reminder_.Silence(now)));
  const Evaluation* running = evaluations_.has_value() ? evaluations_->running() : nullptr;
  std::string checkpoint = IsSaving() ? "the checkpoint to be written" : "";
  if (!record_.save_error.empty()) absl::StrAppend(&checkpoint, " (", record_.save_error, ")");
  if (running == nullptr) return checkpoint + duration;
  return absl::StrCat(checkpoint, checkpoint.empty() ? "" : " and ", "the evaluation of step ",
                      WithCommas(running->version().value()), duration, ": ",
                      running->ranges_done(), " of ",
                      CountText(running->ranges(), "range is", "ranges are"), " done; ",
                      DescribeAll(membership_, now));
}

std::string JobRun::SavingWaitsFor() const {
  if (drain_.has_value()) return drain_->DescribeWaiting();
  return "the checkpoint before it is being written";
}

// Whether the step is known, or long enough silent to be said, not to close as things are.
bool JobRun::MustWait(absl::Duration now) const {
  return stall_reminder_.IsSilent(now) || quorum_.possible < steps_->required() ||
         std::ranges::any_of(steps_->shards(),
                             [](const ShardProgress& shard) { return !shard.problem.ok(); });
}

std::string JobRun::DescribeUnreachable(absl::Duration now) const {
  std::vector<std::string> parts;
  for (const ShardProgress& shard : steps_->shards()) {
    if (shard.problem.ok()) continue;
    parts.push_back(
        absl::StrCat(shard.problem.message(), ", for ", DurationText(now - shard.problem_since)));
  }
  return absl::StrJoin(parts, "; ");
}

std::string JobRun::DescribeNeed() const {
  const std::string text = absl::StrCat(
      "the step needs ", CountText(steps_->required(), "gradient"), " of each variable");
  if (!quorum_.is_short) return text;
  const auto possible = static_cast<uint64_t>(quorum_.possible);
  return absl::StrCat(
      text, ", ",
      quorum_rules_.counts_stamps
          ? absl::StrCat("at most ", possible, " with its stamp can exist")
          : CountText(possible, "worker lives and has data", "workers live and have data"));
}

// What is broken comes first. What only waits for that is left out.
std::string JobRun::TrainingWaitsFor(absl::Duration now) const {
  std::vector<std::string> parts;
  const std::string unreachable = DescribeUnreachable(now);
  const std::string missing = DescribeMissing(membership_, now);
  if (!unreachable.empty()) {
    parts.push_back(unreachable);
    if (quorum_.is_short) parts.push_back(missing);
  } else if (quorum_.is_short) {
    parts.push_back(missing);
    parts.push_back(DescribeNeed());
  } else {
    const std::string busy = DescribeBusy(membership_, now);
    parts.push_back(busy.empty() ? DescribeAll(membership_, now) : busy);
    parts.push_back(DescribeNeed());
  }
  // Which gradients a ps lacks says more than that it has not closed the step.
  if (unreachable.empty() && !pending_at_ps_.empty()) {
    parts.push_back(pending_at_ps_);
  } else if (unreachable.empty()) {
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      if (steps_->shards()[shard].step != record_.global_step) continue;
      parts.push_back(absl::StrCat(shard_names_[shard], " has not closed the step"));
    }
  }
  std::erase(parts, "");
  return absl::StrCat("step ", WithCommas(record_.global_step.value()), " for ",
                      DurationText(stall_reminder_.Silence(now)), ": ", absl::StrJoin(parts, "; "));
}

void JobRun::FillMember(size_t worker, absl::Duration now, MemberStatus* member) const {
  const MemberRecord& record = membership_.members()[worker];
  member->set_worker(static_cast<uint32_t>(worker));
  member->set_address(record.address);
  member->set_state(std::string(Name(record.state)));
  if (record.state != MemberState::kAbsent) {
    member->set_seconds_since_heartbeat(absl::ToDoubleSeconds(now - record.last_heard));
  }
  member->set_local_step(record.report.local_step.value());
  if (record.state == MemberState::kLive) member->set_waiting_for(record.report.waiting_for);
  member->set_examples(record.report.examples);
  member->set_accepted(record.report.accepted);
  member->set_stale(record.report.stale);
  member->set_host(record.host);
  member->set_pid(record.pid);
}

void JobRun::FillShard(size_t index, ShardSummary* shard) const {
  shard->set_shard(static_cast<uint32_t>(index));
  shard->set_address(plan_.cluster.ps[index]);
  shard->set_variables(shard_variables_[index]);
  const bool has_variables = phase_ != Phase::kInitializing && !initialized_.bytes.empty();
  if (has_variables) shard->set_bytes(static_cast<uint64_t>(initialized_.bytes[index]));
  const ShardProgress* progress = steps_.has_value() ? &steps_->shards()[index] : nullptr;
  if (progress != nullptr) shard->set_closed_steps(progress->step.value());
  const absl::Status problem =
      progress != nullptr ? progress->problem : initializer_.Problem(index);
  shard->set_state(!problem.ok() ? "unreachable" : has_variables ? "ready" : "up");
  shard->set_problem(std::string(problem.message()));
}

void JobRun::FillStatus(ProcessStatus* status) const {
  const absl::Duration now = clock_->Monotonic();
  status->set_state(State(now));
  status->set_waiting_for(WaitingFor(now));
  status->set_global_step(record_.global_step.value());

  JobStatus* job = status->mutable_job();
  job->set_name(plan_.job.name());
  job->set_max_steps(plan_.max_steps.value());
  job->set_start_step(record_.start.value());
  job->set_loss(record_.loss);
  const double rate = phase_ == Phase::kTraining ? record_.rate.StepsPerSecond(now) : 0;
  job->set_steps_per_second(rate);
  const uint32_t required = steps_.has_value() ? steps_->required() : plan_.required();
  job->set_examples_per_second(rate * static_cast<double>(plan_.examples_per_step()) /
                               plan_.required() * required);
  job->set_accepted(record_.accepted);
  job->set_stale(record_.stale);
  job->set_variables_per_gradient(variables_per_gradient_);
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
    FillMember(i, now, job->add_members());
  }
  for (size_t i = 0; i < shards_.size(); ++i) FillShard(i, job->add_shards());
  for (const EvaluationTotals& totals : record_.evaluations) {
    *job->add_evaluations() = ToStatus(plan_, totals);
  }
  for (const JobWarnings::Warning& warning : record_.warnings.newest()) {
    JobWarning* told = job->add_warnings();
    told->set_number(warning.number);
    told->set_text(warning.text);
  }
}

}  // namespace lockstep::chief
