#include "chief/job/job_state.h"

#include <utility>

#include "chief/job/job_rules.h"
#include "chief/job/log_lines.h"
#include "chief/job/milestone_runner.h"
#include "chief/job/status_reporter.h"
#include "chief/plan/messages.h"
#include "common/log/log.h"

namespace lockstep::chief {

JobState::JobState(JobInputs in)
    : inputs(std::move(in)),
      membership(inputs.plan.cluster.workers, inputs.options.lease),
      claim(std::make_unique<FolderClaim>(inputs.plan.job.checkpoint().folder())) {
  record.start = record.global_step = inputs.plan.start;
  record.required = inputs.plan.required();
  if (!inputs.plan.is_elastic()) return;
  replicas = std::make_unique<ElasticReplicas>(ReplicaRulesOf(inputs.plan),
                                               QuorumRulesOf(inputs.plan).on_shortage,
                                               inputs.options.quorum_deadline, &membership);
}

void JobState::Warn(std::string text) {
  log::Warning(text);
  record.warnings.Add(std::move(text));
}

void JobState::WatchShortage(bool is_short) {
  if (!is_short) return short_since_.reset();
  if (!short_since_.has_value()) short_since_ = now();
  const absl::Duration lacking = now() - *short_since_;
  if (lacking < inputs.options.quorum_deadline) return;
  control->End({.outcome = TooFewWorkersFor(lacking, reporter->Shortage(control->Describe())),
                .save_first = true});
}

void JobState::AnnounceReplicas() {
  record.replica_views.push_back(replicas->views().newest());
  log::Info(ReplicaViewLine(replicas->views().newest()));
  views->SetReplicaViews(replicas->views());
}

StepLoopOptions MakeStepOptions(const JobState& job) {
  const JobPlan& plan = job.inputs.plan;
  StepLoopOptions options;
  options.command = job.initialized.view.command();
  options.start = job.record.start;
  options.end = plan.max_steps;
  options.asynchronous = plan.asynchronous();
  options.required = job.record.required;
  if (job.replicas != nullptr) {
    options.required_of = [replicas = job.replicas.get()](GlobalStep step) {
      return replicas->RequiredOf(step);
    };
  }
  options.loss_variable = plan.loss_variable;
  options.learning_rate = plan.learning_rate;
  options.keep = [milestones = job.milestones](GlobalStep version) {
    return milestones->KeepAt(version);
  };
  options.patience = job.inputs.options.patience;
  return options;
}

CheckpointerOptions MakeCheckpointerOptions(JobState* job) {
  const JobPlan& plan = job->inputs.plan;
  const CheckpointDef& checkpoint = plan.job.checkpoint();
  const SetViewRequest& view = job->initialized.view;
  return {.command = view.command(),
          .root = checkpoint.folder(),
          .keep_last = static_cast<int>(checkpoint.keep_last()),
          .manifest = ToManifest(plan, Epoch(view.epoch()), job->claim->origin()),
          .claim = job->claim.get(),
          .waits_for_disk = job->inputs.options.waits_for_disk,
          .warn = [job](std::string text) { job->Warn(std::move(text)); }};
}

RegisterTaskReply MakeRegistration(const JobState& job) {
  RegisterTaskReply reply = ToRegistration(job.inputs.plan);
  reply.set_job_id(job.initialized.view.command().job());
  reply.set_term(job.initialized.view.command().term());
  reply.set_epoch(job.initialized.view.epoch());
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(job.inputs.options.lease)));
  return reply;
}

}  // namespace lockstep::chief
