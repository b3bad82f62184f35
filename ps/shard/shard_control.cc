#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/lost_variables.h"
#include "common/base/status_macros.h"
#include "ps/shard/shard_impl.h"

namespace lockstep::ps {
namespace {

absl::Status Stopping() { return absl::CancelledError("the parameter server is stopping"); }

CreatedVariables Created(const EpochState& state) {
  CreatedVariables created;
  created.reply.set_bytes(static_cast<int64_t>(state.catalog.num_bytes()));
  for (const SlotSpec& slot : state.rule->slots()) created.reply.add_slots(slot.name);
  return created;
}

}  // namespace

absl::Status Shard::Impl::CheckServing() const {
  if (phase_ == Phase::kStopped) {
    return absl::UnavailableError("the parameter server is stopping");
  }
  return absl::OkStatus();
}

absl::Status Shard::Impl::CheckHosting() const {
  if (is_creating_) return absl::UnavailableError("the shard is creating its variables: try again");
  if (Hosted() == nullptr) {
    return NoVariablesError("the variables have not been created since it was started");
  }
  return absl::OkStatus();
}

absl::Status Shard::Impl::AdmitCommand(const Command& command) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  LOCKSTEP_RETURN_IF_ERROR(view_.CheckCommand(command));
  return CheckHosting();
}

absl::Status Shard::Impl::AdmitWorker(const WorkerIdentity& worker) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  LOCKSTEP_RETURN_IF_ERROR(view_.CheckWorker(worker));
  return CheckHosting();
}

absl::Status Shard::Impl::Admit(const Command& command) const {
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  return view_.CheckCommand(command);
}

absl::Status Shard::Impl::Admit(const WorkerIdentity& worker) const {
  absl::MutexLock lock(&mutex_);
  return AdmitWorker(worker);
}

ShardState Shard::Impl::StateNow() const {
  ShardState now{.job = view_.job(), .term = view_.term(), .epoch = view_.epoch()};
  if (Hosted() != nullptr) {
    now.has_variables = true;
    now.shard_step = state_->step.shard_step();
    now.global_step = state_->global_step;
    now.kept_versions = state_->snapshots.versions();
    now.evaluations = state_->evaluations.kept();
    now.holds_unsaved = state_->save_failed || state_->snapshots.HasSlots();
  }
  for (const auto& [worker, incarnation] : view_.members()) {
    now.members.push_back({worker, incarnation});
  }
  return now;
}

ShardState Shard::Impl::GetView() const {
  absl::MutexLock lock(&mutex_);
  return StateNow();
}

absl::StatusOr<ShardState> Shard::Impl::SetView(const View& view) {
  DeferredCallbacks deferred;
  absl::StatusOr<ShardState> result;
  {
    absl::MutexLock lock(&mutex_);
    const Term term = view_.term();
    const Epoch epoch = view_.epoch();
    absl::Status status = CheckServing();
    if (status.ok()) status = view_.SetView(view);
    if (!status.ok()) return status;

    if (view_.epoch() > epoch) EnterEpoch(&deferred);
    if (view_.term() > term) {
      if (Hosted() != nullptr && !state_->asynchronous.has_value()) state_->step.Revoke();
      FailGrants(absl::AbortedError(absl::StrCat("the shard is in term ", view.command.term(),
                                                 ": another chief commands")),
                 &deferred);
    }
    pulls_.FailIf(
        [this](const ParkedPull& pull) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return !view_.IsMember(pull.worker.worker, pull.worker.incarnation);
        },
        absl::AbortedError("the worker is no longer a member: register again"), &deferred);
    absl::erase_if(unread_, [this](const auto& of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !view_.IsMember(of.first);
    });
    if (Hosted() != nullptr) {
      const auto has_left =
          [this](const PartialGradient& gradient) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
            return !view_.IsMember(gradient.key.worker, gradient.key.incarnation);
          };
      Abandon(state_.get(), state_->reassembly.RemoveIf(has_left), &deferred);
      if (state_->tokens != nullptr)
        AnswerDequeues(state_->tokens->SetView(view_.members()), &deferred);
    }
    result = StateNow();
  }
  deferred.Run();
  return result;
}

// Another epoch is another state: calls find that of the last one no more, and it goes once nobody
// works on it. Variables that are being made come to nothing (CreateVariables).
void Shard::Impl::EnterEpoch(DeferredCallbacks* deferred) {
  if (Hosted() == nullptr) return;
  const absl::Status status =
      absl::AbortedError(absl::StrCat("the shard has entered epoch ", view_.epoch().value()));
  FailGrants(status, deferred);
  pulls_.FailIf([](const ParkedPull&) { return true; }, status, deferred);
  if (state_->tokens != nullptr) AnswerDequeues(state_->tokens->Drop(status), deferred);
  state_->step.Revoke();
  is_leaving_ = true;
  ++in_flight_;
  EndFlight(deferred);
}

void Shard::Impl::EndFlight(DeferredCallbacks* deferred) {
  if (--in_flight_ > 0 || !is_leaving_) return;
  is_leaving_ = false;
  LetGo(std::shared_ptr<EpochState>(std::move(state_)), deferred);
}

void Shard::Impl::LetGo(std::shared_ptr<const void> memory, DeferredCallbacks* deferred) const {
  if (options_.run_in_background == nullptr) return deferred->LetGo(std::move(memory));
  const auto held = std::make_shared<std::shared_ptr<const void>>(std::move(memory));
  if (!options_.run_in_background([held] { held->reset(); })) deferred->LetGo(std::move(*held));
}

void Shard::Impl::DoInBackground(std::function<void()> work) {
  {
    absl::MutexLock lock(&mutex_);
    ++in_background_;
    ++in_flight_;
  }
  const std::function<void()> counted = [this, work = std::move(work)] {
    work();
    absl::MutexLock lock(&mutex_);
    --in_background_;
  };
  if (!options_.run_in_background(counted)) counted();
}

Shard::Impl::~Impl() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](int* in_background) { return *in_background == 0; }, &in_background_));
}

void Shard::Impl::FailGrants(const absl::Status& status, DeferredCallbacks* deferred) {
  for (ParkedGrant& grant : std::exchange(grants_, {})) {
    deferred->Answer<ClosedStep>(std::move(grant.done), status);
  }
}

absl::StatusOr<CreatedVariables> Shard::Impl::CreateVariables(
    const CreateVariablesRequest& request) {
  auto config = std::make_shared<const EpochConfig>(request);
  Epoch epoch;
  ShardIndex shard;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(CheckServing());
    LOCKSTEP_RETURN_IF_ERROR(view_.CheckCommand(request.command()));
    mutex_.Await(absl::Condition(
        +[](Impl* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) {
          return !self->is_creating_ && !self->is_leaving_;
        },
        this));
    // Again: the view may have changed meanwhile.
    LOCKSTEP_RETURN_IF_ERROR(CheckServing());
    LOCKSTEP_RETURN_IF_ERROR(view_.CheckCommand(request.command()));
    if (state_ != nullptr) {
      if (state_->config.Fingerprint() != config->Fingerprint()) {
        return absl::FailedPreconditionError(
            "the shard has been created from another placement, optimizer, seed, sync or number of "
            "replicas");
      }
      return Created(*state_);
    }
    is_creating_ = true;
    epoch = view_.epoch();
    shard = view_.shard();
  }
  auto created = CreateEpochState(std::move(config), shard, options_);
  absl::MutexLock lock(&mutex_);
  is_creating_ = false;
  if (!created.ok()) return created.status();
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  LOCKSTEP_RETURN_IF_ERROR(view_.CheckCommand(request.command()));
  if (view_.epoch() != epoch) {
    return absl::AbortedError(
        absl::StrCat("the shard has entered epoch ", view_.epoch().value(), " meanwhile"));
  }
  state_ = *std::move(created);
  if (state_->asynchronous.has_value()) GrantItself(state_.get());
  CreatedVariables told = Created(*state_);
  told.missing_slots = std::move(state_->missing_slots);
  return told;
}

absl::Status Shard::Impl::Finish(const Command& command) {
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(CheckServing());
    LOCKSTEP_RETURN_IF_ERROR(view_.CheckCommand(command));
    phase_ = Phase::kFinished;
    const absl::Status status = absl::CancelledError("the job is over");
    FailGrants(status, &deferred);
    pulls_.FailIf([](const ParkedPull&) { return true; }, status, &deferred);
    if (Hosted() != nullptr && state_->tokens != nullptr) {
      AnswerDequeues(state_->tokens->Finish(), &deferred);
    }
  }
  deferred.Run();
  return absl::OkStatus();
}

void Shard::Impl::Stop() {
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    phase_ = Phase::kStopped;
    FailGrants(Stopping(), &deferred);
    pulls_.FailIf([](const ParkedPull&) { return true; }, Stopping(), &deferred);
    if (Hosted() != nullptr && state_->tokens != nullptr) {
      AnswerDequeues(state_->tokens->Drop(Stopping()), &deferred);
    }
  }
  deferred.Run();
}

}  // namespace lockstep::ps
