#include "ps/shard/shard_view.h"

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "common/base/status_macros.h"

namespace lockstep::ps {
namespace {

constexpr char kNotCalled[] = "no chief has called it since it was started";

// A worker registers once, when it starts: one that is started again is let in.
absl::Status RegisterAgain(const absl::Status& status) {
  return WithExitCode(status, ExitCode::kPeersLost);
}

}  // namespace

absl::Status ShardView::SetView(const View& view, Hosted hosted) {
  if (view.command.job() == 0) return absl::InvalidArgumentError("the view names no job");
  absl::btree_map<WorkerIndex, Incarnation> members;
  for (const Member& member : view.members) {
    if (!members.emplace(member.worker, member.incarnation).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the view has worker ", member.worker.value(), " twice"));
    }
  }
  if (job_ != 0) {
    LOCKSTEP_RETURN_IF_ERROR(CheckJob(view.command.job()));
    LOCKSTEP_RETURN_IF_ERROR(CheckTerm(view.command));
    if (Term(view.command.term()) == term_ && view.number < number_) {
      return absl::AbortedError(absl::StrCat("view ", view.number, " of term ", term_.value(),
                                             " is over: the shard has view ", number_));
    }
    if (view.shard != shard_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "this is shard ", shard_.value(), ", the view calls it shard ", view.shard.value()));
    }
    if (view.epoch < epoch_) {
      return absl::AbortedError(absl::StrCat("epoch ", view.epoch.value(),
                                             " is over: the shard is in epoch ", epoch_.value()));
    }
    LOCKSTEP_RETURN_IF_ERROR(CheckReplicas(view));
    LOCKSTEP_RETURN_IF_ERROR(CheckRole(view, hosted));
  }
  // A copy becomes the primary when it has applied all that it holds (BecomePrimary).
  if (job_ == 0 || view.epoch > epoch_ || view.is_copy) {
    is_deposed_ = false;
    is_copy_ = view.is_copy;
  }
  if (view.is_copy) members = {{kPrimaryOfCopy.worker, kPrimaryOfCopy.incarnation}};
  // Another epoch has views of its own.
  if (view.epoch > epoch_) replica_views_ = {};
  if (!view.replica_views.empty()) replica_views_ = view.replica_views;
  job_ = view.command.job();
  term_ = Term(view.command.term());
  chief_ = Incarnation(view.command.chief());
  number_ = view.number;
  epoch_ = view.epoch;
  shard_ = view.shard;
  copy_address_ = view.copy_address;
  lease_ = view.lease;
  members_ = std::move(members);
  return absl::OkStatus();
}

absl::Status ShardView::CheckFinish(const Command& command) const {
  if (job_ == 0) return NoVariablesError(kNotCalled);
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(command.job()));
  return CheckTerm(command);
}

absl::Status ShardView::CheckCommand(const Command& command) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckFinish(command));
  if (Term(command.term()) > term_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "term ", command.term(), " has set no view; the shard is in term ", term_.value()));
  }
  return absl::OkStatus();
}

absl::Status ShardView::CheckServingCommand(const Command& command) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckCommand(command));
  return CheckServes();
}

absl::StatusOr<Term> ShardView::TermOf(const Command& command) const {
  if (job_ == 0) return Term();
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(command.job()));
  if (Incarnation(command.chief()) == chief_) return term_;
  return absl::AbortedError(
      absl::StrCat("the shard is in term ", term_.value(), ": another chief commands"));
}

absl::Status ShardView::CheckWorker(const WorkerIdentity& worker) const {
  if (job_ == 0) return NoVariablesError(kNotCalled);
  if (absl::Status other = CheckJob(worker.job); !other.ok()) return RegisterAgain(other);
  if (worker.epoch != epoch_) {
    return RegisterAgain(absl::AbortedError(
        absl::StrCat("worker ", worker.worker.value(), " is in epoch ", worker.epoch.value(),
                     ", the shard in epoch ", epoch_.value(), ": register again")));
  }
  LOCKSTEP_RETURN_IF_ERROR(worker.incarnation == kPrimaryOfCopy.incarnation ? CheckNotDeposed()
                                                                            : CheckServes());
  const auto member = members_.find(worker.worker);
  if (member == members_.end()) {
    return RegisterAgain(absl::FailedPreconditionError(
        absl::StrCat("worker ", worker.worker.value(), " is not a member: register first")));
  }
  if (member->second != worker.incarnation) {
    return absl::AbortedError(absl::StrCat("incarnation ", worker.incarnation.value(),
                                           " of worker ", worker.worker.value(),
                                           " has been replaced by ", member->second.value()));
  }
  return absl::OkStatus();
}

bool ShardView::IsMember(WorkerIndex worker, Incarnation incarnation) const {
  const auto member = members_.find(worker);
  return member != members_.end() && member->second == incarnation;
}

std::vector<std::pair<WorkerIndex, Incarnation>> ShardView::members() const {
  return {members_.begin(), members_.end()};
}

absl::Status ShardView::CheckJob(uint64_t job) const {
  if (job == job_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the shard serves job ", absl::Hex(job_), ", not job ", absl::Hex(job)));
}

absl::Status ShardView::CheckNotDeposed() const {
  if (!is_deposed_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the copy of shard ", shard_.value(),
                                             " serves the workers now, in place of this ps"));
}

absl::Status ShardView::CheckServes() const {
  LOCKSTEP_RETURN_IF_ERROR(CheckNotDeposed());
  if (!is_copy_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("this ps keeps a copy of shard ", shard_.value(), ", which ",
                   other_place_.empty() ? "another one" : other_place_, " serves"));
}

absl::Status ShardView::CheckReplicas(const View& view) const {
  if (view.epoch > epoch_ || view.replica_views.empty() || replica_views_.empty()) {
    return absl::OkStatus();
  }
  const uint64_t number = view.replica_views.newest().number;
  const uint64_t newest = replica_views_.newest().number;
  if (number >= newest) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("replica view ", number, " is over: the shard has view ", newest));
}

absl::Status ShardView::CheckRole(const View& view, Hosted hosted) const {
  if (view.epoch > epoch_) return absl::OkStatus();
  if (view.is_copy && !is_copy_ && !is_deposed_ && hosted == Hosted::kOnlyHere) {
    return absl::AbortedError(absl::StrCat("shard ", shard_.value(),
                                           " serves the workers, and no other ps has its state"));
  }
  if (!view.is_copy && is_copy_ && hosted == Hosted::kIncomplete) {
    return NoVariablesError(
        absl::StrCat("the copy of shard ", shard_.value(),
                     " awaits state of its primary, and cannot serve the workers"));
  }
  return absl::OkStatus();
}

absl::Status ShardView::CheckTerm(const Command& command) const {
  const Term term(command.term());
  if (term < term_) {
    return absl::AbortedError(
        absl::StrCat("term ", term.value(), " is over: the shard is in term ", term_.value()));
  }
  if (term == term_ && Incarnation(command.chief()) != chief_) {
    return absl::AbortedError(absl::StrCat("term ", term.value(), " belongs to another chief"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::ps
