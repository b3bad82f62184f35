#include "chief/job/completing_phase.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/job/job_rules.h"
#include "chief/job/log_lines.h"
#include "chief/job/milestone_runner.h"
#include "chief/job/status_reporter.h"
#include "chief/sync/shard_problem.h"
#include "common/log/log.h"

namespace lockstep::chief {

CompletingPhase::CompletingPhase(JobState* job, std::unique_ptr<GroupKeeper> group)
    : job_(job),
      group_(std::move(group)),
      stall_reminder_(kStallReminder, job->now()),
      watched_since_(job->now()),
      held_at_(job->now()) {}

void CompletingPhase::OnEvent(JobEvent event) {
  if (event == JobEvent::kMembersConfirmed) return;
  if (event == JobEvent::kMilestoneEnded) stall_reminder_.Progress(job_->now());
  EndIfComplete();
}

void CompletingPhase::EndIfComplete() {
  if (job_->milestones->is_saving() || job_->milestones->running() != nullptr) return;
  job_->control->End({.outcome = absl::OkStatus()});
}

void CompletingPhase::WatchQuorum() {
  const bool is_short = job_->milestones->running() != nullptr && job_->membership.Live().empty();
  const OnShortage policy = QuorumRulesOf(job_->inputs.plan).on_shortage;
  if (is_short && policy == OnShortage::kAbort && !job_->milestones->is_saving()) {
    const std::string shortage = job_->reporter->Shortage(job_->control->Describe());
    return job_->control->End({.outcome = TooFewWorkers(shortage, policy), .save_first = true});
  }
  job_->WatchShortage(is_short);
}

void CompletingPhase::WatchShards() {
  if (stopped_) return;
  if (job_->milestones->is_saving()) {
    watched_since_ = job_->now();
    return;
  }
  const absl::Duration now = job_->now();
  for (size_t shard = 0; shard < job_->inputs.shards.size(); ++shard) {
    const ShardProblem& problem = job_->views->problem(shard);
    const absl::Duration watched = now - std::max(problem.since, watched_since_);
    absl::Status lost = CheckPatience(problem, watched, job_->inputs.options.patience);
    if (!lost.ok()) return job_->control->End({.outcome = std::move(lost)});
  }
}

void CompletingPhase::WatchHolders() {
  const GlobalStep last = job_->inputs.plan.max_steps;
  if (stopped_ || group_ == nullptr || job_->milestones->saved() == last) return;
  const absl::Duration now = job_->now();
  if (group_->FollowHolders()) {
    held_at_ = now;
    return;
  }
  // The ps may have it all the same, and be writing it.
  if (now - held_at_ < job_->inputs.options.patience) return;
  job_->control->End({.outcome = VariablesLost(last)});
}

void CompletingPhase::Tick() {
  WatchQuorum();
  WatchShards();
  WatchHolders();
  if (stopped_ || !stall_reminder_.Due(job_->now())) return;
  const JobFacts facts = job_->control->Describe();
  log::Warning(absl::StrCat("waiting for ", job_->reporter->WaitingFor(facts)));
}

void CompletingPhase::Describe(JobFacts* facts) const {
  facts->stage = JobStage::kCompleting;
  facts->silence = stall_reminder_.Silence(facts->now);
  facts->is_silent = stall_reminder_.IsSilent(facts->now);
  facts->is_saving = job_->milestones->is_saving();
  facts->evaluation = job_->milestones->running();
  for (size_t shard = 0; shard < facts->shards.size(); ++shard) {
    facts->shards[shard].problem = job_->views->problem(shard);
  }
}

}  // namespace lockstep::chief
