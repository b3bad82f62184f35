#include "chief/job/status_reporter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/job/job_rules.h"
#include "chief/job/summary.h"
#include "chief/membership/describe.h"
#include "common/base/quantity.h"
#include "common/config/shard_names.h"

namespace lockstep::chief {
namespace {

std::string DescribeUnreachable(const JobFacts& facts) {
  std::vector<std::string> parts;
  for (const ShardFacts& shard : facts.shards) {
    if (shard.problem.ok()) continue;
    parts.push_back(absl::StrCat(shard.problem.status.message(), ", for ",
                                 DurationText(facts.now - shard.problem.since)));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace

std::string DescribePending(size_t shard, const ShardProgress& progress) {
  std::vector<std::string> variables;
  for (const VariableStatus& variable : progress.pending()) {
    std::string text =
        absl::StrCat(variable.name(), " (", variable.have(), " of ", variable.required());
    if (variable.from_size() > 0) {
      absl::StrAppend(&text, ", from worker ", absl::StrJoin(variable.from(), ", "));
    }
    variables.push_back(absl::StrCat(text, ")"));
  }
  if (variables.empty()) return "";
  return absl::StrCat("ps ", shard, " waits for ", absl::StrJoin(variables, ", "));
}

StatusReporter::StatusReporter(const JobPlan* plan, const Membership* membership,
                               const RunRecord* record)
    : plan_(*plan),
      membership_(*membership),
      record_(*record),
      shard_variables_(CountVariables(*plan)),
      variables_per_gradient_(VariablesPerGradient(*plan)) {}

std::string StatusReporter::State(const JobFacts& facts) const {
  switch (facts.stage) {
    case JobStage::kInitializing:
    case JobStage::kGathering:
    case JobStage::kGoingBack:
      return "starting";
    case JobStage::kTraining:
      return MustWait(facts) ? "waiting" : "training";
    case JobStage::kCompleting:
      if (facts.is_silent) return "waiting";
      return facts.is_saving ? "saving" : "evaluating";
    case JobStage::kSaving:
      return "saving";
    case JobStage::kOver:
      return "done";
  }
  return "";
}

std::string StatusReporter::WaitingFor(const JobFacts& facts) const {
  switch (facts.stage) {
    case JobStage::kInitializing:
    case JobStage::kGathering:
    case JobStage::kGoingBack:
      return AdmissionWaitsFor(facts);
    case JobStage::kTraining:
      return MustWait(facts) ? TrainingWaitsFor(facts) : "";
    case JobStage::kCompleting:
      return facts.is_silent ? CompletingWaitsFor(facts) : "";
    case JobStage::kSaving:
      return SavingWaitsFor(facts.drain);
    case JobStage::kOver:
      return "";
  }
  return "";
}

std::string StatusReporter::AdmissionWaitsFor(const JobFacts& facts) const {
  if (facts.stage == JobStage::kInitializing) {
    if (facts.is_disk_awaited) {
      return absl::StrCat("the disk of the checkpoint folder ", plan_.job.checkpoint().folder(),
                          facts.disk_problem.empty() ? "" : ": ", facts.disk_problem);
    }
    return facts.uninitialized.empty() ? "the ps" : absl::StrCat("the ps: ", facts.uninitialized);
  }
  if (facts.stage == JobStage::kGoingBack) return "the checkpoint to go back to";
  if (facts.stage != JobStage::kGathering) return "the ps to accept the new member";
  const size_t here = membership_.Live().size();
  if (here >= facts.needed_workers) return "the ps to accept the workers";
  return absl::StrCat("enough workers: ", here, " of ", facts.needed_workers,
                      here == 1 ? " is there; " : " are there; ",
                      DescribeMissing(membership_, facts.now));
}

std::string StatusReporter::Pending(const ProgressByShard& progress) const {
  std::vector<std::string> parts;
  for (size_t shard = 0; shard < progress.size(); ++shard) {
    if (progress[shard].has_value()) parts.push_back(DescribePending(shard, *progress[shard]));
  }
  std::erase(parts, "");
  return absl::StrJoin(parts, "; ");
}

bool StatusReporter::MustWait(const JobFacts& facts) const {
  return facts.is_silent || facts.quorum.possible < record_.required ||
         std::ranges::any_of(facts.shards,
                             [](const ShardFacts& shard) { return !shard.problem.ok(); });
}

std::string StatusReporter::Need(const JobFacts& facts) const {
  std::string text =
      absl::StrCat("the step needs ", CountText(record_.required, "gradient"), " of each variable");
  if (!facts.quorum.is_short) return text;
  const auto possible = static_cast<uint64_t>(facts.quorum.possible);
  return absl::StrCat(
      text, ", ",
      QuorumRulesOf(plan_).counts_tokens
          ? absl::StrCat("at most ", possible, " with its local_step can exist")
          : CountText(possible, "worker lives and has data", "workers live and have data"));
}

// What is broken comes first. What only waits for that is left out.
std::string StatusReporter::TrainingWaitsFor(const JobFacts& facts) const {
  std::vector<std::string> parts;
  const std::string unreachable = DescribeUnreachable(facts);
  const std::string missing = DescribeMissing(membership_, facts.now);
  if (!unreachable.empty()) {
    parts.push_back(unreachable);
    if (facts.quorum.is_short) parts.push_back(missing);
  } else if (facts.quorum.is_short) {
    parts.push_back(missing);
    parts.push_back(Need(facts));
  } else {
    const std::string busy = DescribeBusy(membership_, facts.now);
    parts.push_back(busy.empty() ? DescribeAll(membership_, facts.now) : busy);
    parts.push_back(Need(facts));
  }
  // Which gradients a ps lacks says more than that it has not closed the step.
  const std::string pending = Pending(facts.progress);
  if (unreachable.empty() && !pending.empty()) {
    parts.push_back(pending);
  } else if (unreachable.empty()) {
    for (size_t shard = 0; shard < facts.shards.size(); ++shard) {
      if (facts.shards[shard].closed_steps != record_.global_step) continue;
      parts.push_back(
          absl::StrCat(ShardNames(plan_.cluster.ps)[shard], " has not closed the step"));
    }
  }
  std::erase(parts, "");
  return absl::StrCat("step ", WithCommas(record_.global_step.value()), " for ",
                      DurationText(facts.silence), ": ", absl::StrJoin(parts, "; "));
}

std::string StatusReporter::CompletingWaitsFor(const JobFacts& facts) const {
  const std::string duration = absl::StrCat(" for ", DurationText(facts.silence));
  std::string checkpoint = facts.is_saving ? "the checkpoint to be written" : "";
  if (!record_.save_error.empty()) absl::StrAppend(&checkpoint, " (", record_.save_error, ")");
  const std::string unreachable = DescribeUnreachable(facts);
  if (facts.evaluation == nullptr) {
    return absl::StrCat(checkpoint, duration, unreachable.empty() ? "" : ": ", unreachable);
  }
  return absl::StrCat(checkpoint, checkpoint.empty() ? "" : " and ", "the evaluation of step ",
                      WithCommas(facts.evaluation->version().value()), duration, ": ", unreachable,
                      unreachable.empty() ? "" : "; ", facts.evaluation->ranges_done(), " of ",
                      CountText(facts.evaluation->ranges(), "range is", "ranges are"), " done; ",
                      DescribeAll(membership_, facts.now));
}

std::string StatusReporter::Shortage(const JobFacts& facts) const {
  const std::string missing = DescribeMissing(membership_, facts.now);
  const absl::string_view separator = missing.empty() ? "" : "; ";
  if (facts.stage != JobStage::kCompleting) {
    return absl::StrCat("step ", WithCommas(record_.global_step.value()), ": ", missing, separator,
                        Need(facts));
  }
  return absl::StrCat("the evaluation of step ", WithCommas(facts.evaluation->version().value()),
                      ": ", missing, separator, "it needs a worker, and none lives");
}

std::string StatusReporter::SavingWaitsFor(const DrainFacts& facts) const {
  if (!facts.problem.empty()) return facts.problem;
  switch (facts.stage) {
    case DrainFacts::Stage::kEarlierSave:
      return "the checkpoint before it is being written";
    case DrainFacts::Stage::kAskingShards:
      return "";
    case DrainFacts::Stage::kWriting:
      return "the checkpoint is being written";
    case DrainFacts::Stage::kClosingStep:
      return absl::StrCat("step ", facts.step.value(),
                          " is under way, and not all gradients are there");
  }
  return "";
}

void StatusReporter::FillMember(size_t worker, absl::Duration now, MemberStatus* member) const {
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

void StatusReporter::FillShard(size_t shard, const ShardFacts& facts, ShardSummary* summary) const {
  summary->set_shard(static_cast<uint32_t>(shard));
  summary->set_address(plan_.cluster.ps[shard]);
  summary->set_variables(shard_variables_[shard]);
  summary->set_bytes(static_cast<uint64_t>(facts.bytes));
  summary->set_closed_steps(facts.closed_steps.value());
  summary->set_state(!facts.problem.ok() ? "unreachable" : facts.has_variables ? "ready" : "up");
  summary->set_problem(std::string(facts.problem.status.message()));
  summary->set_serving_address(facts.place.address());
  summary->set_copy_address(facts.place.other_address());
  if (facts.has_variables) {
    summary->set_seconds_without_copy(absl::ToDoubleSeconds(facts.without_copy));
  }
}

void StatusReporter::FillJob(const JobFacts& facts, JobStatus* job) const {
  job->set_name(plan_.job.name());
  job->set_max_steps(plan_.max_steps.value());
  job->set_start_step(record_.start.value());
  job->set_loss(record_.loss);
  const bool trains = facts.stage == JobStage::kTraining;
  const double rate = trains ? record_.rate.StepsPerSecond(facts.real_now) : 0;
  job->set_steps_per_second(rate);
  job->set_examples_per_second(rate * ExamplesPerStep(plan_, record_));
  job->set_accepted(record_.accepted);
  job->set_stale(record_.stale);
  job->set_variables_per_gradient(variables_per_gradient_);
  job->set_replicas_to_aggregate(ReplicasToAggregate(plan_, record_));
  job->set_asynchronous(plan_.asynchronous());
  job->set_required_now(record_.required);
  job->set_total_num_replicas(record_.replica_views.empty()
                                  ? static_cast<uint32_t>(plan_.cluster.workers.size())
                                  : record_.replica_views.back().total());
  job->set_last_checkpoint(record_.checkpoint);
  job->set_restored_from(record_.restored_from);
  job->set_checkpoint_error(record_.save_error);
  const int64_t left = plan_.max_steps.value() - record_.global_step.value();
  job->set_eta_seconds(rate > 0 ? static_cast<double>(left) / rate : 0);
  if (trains)
    job->set_seconds_since_step(absl::ToDoubleSeconds(facts.real_now - record_.last_commit));
}

void StatusReporter::FillStatus(const JobFacts& facts, ProcessStatus* status) const {
  status->set_state(State(facts));
  status->set_waiting_for(WaitingFor(facts));
  status->set_global_step(record_.global_step.value());
  JobStatus* job = status->mutable_job();
  FillJob(facts, job);
  for (size_t i = 0; i < membership_.members().size(); ++i) {
    FillMember(i, facts.now, job->add_members());
  }
  for (size_t i = 0; i < facts.shards.size(); ++i) {
    FillShard(i, facts.shards[i], job->add_shards());
  }
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
