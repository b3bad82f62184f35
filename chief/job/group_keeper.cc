#include "chief/job/group_keeper.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "proto/group.pb.h"

namespace lockstep::chief {
namespace {

// Those that an earlier chief has left have the variables.
std::vector<LiveMember> Adopted(const JobState& job) {
  const bool takes_over = job.initialized.start == StartPoint::kTakeOver;
  return takes_over ? job.membership.Live() : std::vector<LiveMember>();
}

}  // namespace

GroupKeeper::GroupKeeper(JobState* job, size_t size)
    : job_(job),
      former_(Term(job->initialized.view.command().term()), Epoch(job->initialized.view.epoch()),
              size, Adopted(*job)) {}

absl::Status GroupKeeper::Follow() {
  const std::vector<LiveMember> live = job_->membership.Live();
  // Until every shard knows that somebody has gone, the step at hand may close without a successor.
  if (job_->views->confirmed() != live) return absl::OkStatus();
  for (const LiveMember& member : live) {
    const WorkerReport& report = job_->membership.members()[member.worker.value()].report;
    former_.NoteFailure(report.failed_view, report.local_step);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_new, former_.Update(live, {job_->views->open_step(),
                                                                     job_->views->start_step()}));
  if (is_new) SendGroup();
  return absl::OkStatus();
}

bool GroupKeeper::FollowHolders() {
  const std::vector<LiveMember> live = job_->membership.Live();
  if (former_.KeepHolders(live, job_->inputs.plan.max_steps)) SendGroup();
  return former_.HasHolder(live, job_->inputs.plan.max_steps);
}

void GroupKeeper::SendGroup() {
  GroupView group;
  group.set_job(job_->initialized.view.command().job());
  group.set_term(former_.id().term);
  group.set_epoch(former_.id().epoch);
  group.set_view(former_.id().view);
  group.set_step(former_.step().value());
  for (const GroupFormer::Member& member : former_.members()) {
    GroupMember* to = group.add_members();
    to->set_worker(member.live.worker.value());
    to->set_incarnation(member.live.incarnation.value());
    to->set_address(job_->membership.members()[member.live.worker.value()].address);
    to->set_has_variables(member.has_variables);
  }
  job_->calls->SetGroup(std::move(group));
}

}  // namespace lockstep::chief
