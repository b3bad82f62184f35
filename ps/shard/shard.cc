#include "ps/shard/shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/lost_variables.h"
#include "common/base/status_macros.h"
#include "ps/shard/epoch_state.h"
#include "ps/shard/step_applier.h"

namespace lockstep::ps {
namespace {

constexpr size_t kMaxPendingReported = 8;

}  // namespace

absl::Status Shard::CheckServing() const {
  if (phase_ == Phase::kStopped) {
    return absl::UnavailableError("the parameter server is stopping");
  }
  return absl::OkStatus();
}

absl::Status Shard::CheckHosting(const absl::Status& identity) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  LOCKSTEP_RETURN_IF_ERROR(identity);
  if (is_creating_) return absl::UnavailableError("the shard is creating its variables: try again");
  if (gate_.state() != nullptr) return absl::OkStatus();
  return NoVariablesError("the variables have not been created since it was started");
}

absl::Status Shard::Admit(const Command& command) const {
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  return view_.CheckCommand(command);
}

absl::StatusOr<Term> Shard::TermOf(const Command& command) const {
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  return view_.TermOf(command);
}

absl::Status Shard::Admit(const WorkerIdentity& worker) const {
  absl::MutexLock lock(&mutex_);
  return CheckHosting(view_.CheckWorker(worker));
}

absl::StatusOr<EpochGate::Pass> Shard::Enter(const WorkerIdentity& worker) {
  while (true) {
    if (EpochGate::Pass pass = gate_.Enter()) return pass;
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(CheckHosting(view_.CheckWorker(worker)));
  }
}

void Shard::Grant(const GrantArguments& arguments, Callback<ClosedStep> done) {
  std::optional<StepApplier> applier;
  {
    DeferringLock lock(&mutex_);
    absl::Status status = CheckHosting(view_.CheckServingCommand(arguments.command));
    if (status.ok() && phase_ == Phase::kFinished) {
      status = absl::FailedPreconditionError("the job is over");
    }
    EpochState* const state = gate_.state();
    if (status.ok()) {
      state->mu.AssertHeld();
      status = state->driver->Park(arguments, &done, lock.deferred());
    }
    if (!status.ok()) return lock.deferred()->Answer<ClosedStep>(std::move(done), status);
    applier.emplace(gate_.Enter());
    applier->TakeReady(lock.deferred());
  }
  applier->Run();
}

absl::StatusOr<GlobalStep> Shard::CommitStep(const Command& command, GlobalStep step, bool last) {
  DeferringLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckHosting(view_.CheckServingCommand(command)));
  EpochState& state = *gate_.state();
  state.mu.AssertHeld();
  if (state.tokens == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("commit of step ", step.value(),
                                                      ": sent to shard ", view_.shard().value(),
                                                      "; the step shard is shard 0"));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      state.tokens->Commit(step, last, state.step.shard_step(), lock.deferred()));
  return state.tokens->global_step();
}

void Shard::DequeueToken(const DequeueArguments& arguments, Callback<Token> done) {
  const WorkerIdentity& worker = arguments.worker;
  DeferringLock lock(&mutex_);
  absl::Status status = CheckHosting(view_.CheckWorker(worker));
  EpochState* const state = gate_.state();
  if (status.ok() && state->tokens == nullptr) {
    status = absl::FailedPreconditionError(
        absl::StrCat("tokens are at shard 0, this is shard ", view_.shard().value()));
  }
  if (status.ok() && arguments.dequeue_seq == DequeueSeq()) {
    status = absl::InvalidArgumentError("dequeue_seq counts from 1, got 0");
  }
  if (!status.ok()) return lock.deferred()->Answer<Token>(std::move(done), status);
  state->mu.AssertHeld();
  const std::optional<GlobalStep> seen =
      state->receiver.ledger().NewestLocalStep(worker.worker, worker.incarnation);
  state->tokens->Dequeue(arguments, seen, std::move(done), lock.deferred());
}

void Shard::Pull(const PullArguments& arguments, Callback<PullResult> done) {
  const absl::StatusOr<EpochGate::Pass> pass = Enter(arguments.worker);
  if (!pass.ok()) return done(pass.status());
  EpochState& state = *pass->state();
  auto pieces = state.variables.catalog.ResolvePull(arguments);
  DeferringLock lock(&mutex_);
  state.mu.AssertHeld();
  absl::Status status = CheckHosting(view_.CheckWorker(arguments.worker));
  if (status.ok()) status = state.variables.config.CheckTower(arguments.worker);
  if (status.ok()) status = pieces.status();
  if (!status.ok()) return lock.deferred()->Answer<PullResult>(std::move(done), status);
  state.reader.Pull(arguments, *std::move(pieces), state.is_finished, std::move(done),
                    lock.deferred());
}

void Shard::CancelPull(PullTicket* ticket) {
  DeferringLock lock(&mutex_);
  ticket->is_cancelled = true;
  readers_.parked.Cancel(ticket->pull, lock.deferred());
}

ShardReport Shard::Report() const {
  absl::MutexLock lock(&mutex_);
  ShardReport report;
  report.state = StateNow();
  report.accepted = counts_.accepted;
  report.stale = counts_.stale;
  report.duplicates = counts_.duplicates;
  report.rejected = counts_.rejected;
  report.waiting_pulls = static_cast<uint32_t>(readers_.parked.size());
  const EpochState* const state = gate_.state();
  if (state == nullptr) return report;

  state->mu.AssertHeld();
  const EpochVariables& variables = state->variables;
  report.variables = static_cast<uint32_t>(variables.catalog.size());
  report.bytes = variables.catalog.num_bytes();
  report.held_bytes = state->receiver.held_bytes();
  report.staleness = state->driver->staleness();
  if (state->tokens != nullptr) report.waiting_dequeues = state->tokens->queue()->num_waiting();
  const auto& terms = state->step.terms();
  const uint32_t required =
      terms.has_value() ? terms->required : variables.config.replicas_to_aggregate();
  for (size_t variable = 0; variable < variables.catalog.size(); ++variable) {
    if (state->step.IsTaken(variable)) continue;
    if (++report.open_variables > kMaxPendingReported) continue;
    PendingVariable pending{.name = variables.catalog[variable].name, .required = required};
    for (const HeldGradient& gradient : state->step.accumulator(variable).held()) {
      pending.from.push_back(gradient.worker);
    }
    pending.have = static_cast<uint32_t>(pending.from.size());
    report.pending.push_back(std::move(pending));
  }
  return report;
}

ShardActivity Shard::Activity() const {
  absl::MutexLock lock(&mutex_);
  ShardActivity activity{
      .pushes = counts_.accepted + counts_.stale + counts_.duplicates + counts_.rejected,
      .answered_pulls = readers_.num_answered,
      .waiting_pulls = readers_.parked.size(),
      .state_messages = state_messages_};
  if (const EpochState* const state = gate_.state()) {
    state->mu.AssertHeld();
    activity.has_variables = true;
    activity.shard_step = state->step.shard_step();
    activity.held_bytes = state->receiver.held_bytes();
  }
  return activity;
}

}  // namespace lockstep::ps
