// The shard from its first view to its end.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/job_over.h"
#include "common/base/status_macros.h"
#include "ps/shard/epoch_state.h"
#include "ps/shard/shard.h"
#include "ps/shard/step_applier.h"

namespace lockstep::ps {
namespace {

CreatedVariables Created(const EpochState& state) {
  CreatedVariables created;
  created.has_checksums = state.variables.config.transport().checksums();
  created.reply.set_bytes(static_cast<int64_t>(state.variables.catalog.num_bytes()));
  absl::flat_hash_set<std::string> names;
  for (const OptimizerRules& rules : state.variables.optimizers) {
    for (const SlotSpec& slot : rules.plain().slots()) {
      if (names.insert(slot.name).second) created.reply.add_slots(slot.name);
    }
  }
  return created;
}

// CopyTargetOptions::shared_bytes.
uint64_t SharedMeanBytes(const EpochVariables& variables) {
  if (!variables.config.shares_values()) return 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < variables.catalog.size(); ++i) {
    const CatalogEntry& entry = variables.catalog[i];
    if (entry.TakesGradients() && !entry.is_sparse) bytes += Tensor::RoomFor(entry.num_bytes);
  }
  return bytes;
}

}  // namespace

Shard::Shard(const ShardOptions& options)
    : options_(options),
      pool_(options.threads),
      view_(options.other_place),
      gate_(&mutex_, options.run_in_background) {}

Shard::~Shard() {
  Stop();
  if (const EpochGate::Pass pass = gate_.Enter()) gate_.Close();
  absl::MutexLock lock(&mutex_);
  // What is done in the background.
  mutex_.Await(absl::Condition(&gate_, &EpochGate::IsEmpty));
}

ShardState Shard::StateNow() const {
  ShardState now{.job = view_.job(), .term = view_.term(), .epoch = view_.epoch()};
  now.replica_views = view_.replica_views();
  if (const EpochState* const state = gate_.state()) {
    state->mu.AssertHeld();
    now.has_variables = true;
    now.shard_step = state->step.shard_step();
    now.start_step = state->variables.config.start_step();
    now.global_step = state->tokens != nullptr ? state->tokens->global_step()
                                               : state->variables.config.start_step();
    now.kept_versions = state->snapshots.versions();
    now.evaluations = state->evaluations.kept();
    now.holds_unsaved = !state->is_finished && state->Unsaved().has_value();
    now.awaits_state = state->AwaitsState();
    now.has_copy = state->AnyCopy() != nullptr;
    if (now.has_copy) now.copy_silence = state->AnyCopy()->Silence();
  }
  now.is_copy = view_.is_copy();
  now.is_deposed = view_.is_deposed();
  for (const auto& [worker, incarnation] : view_.members()) {
    now.members.push_back({worker, incarnation});
  }
  return now;
}

ShardState Shard::GetView() const {
  absl::MutexLock lock(&mutex_);
  return StateNow();
}

absl::StatusOr<ShardState> Shard::SetView(const View& view) {
  EpochGate::Pass ended;
  std::optional<StepApplier> applier;
  {
    DeferringLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(EnterView(view, &ended, &applier, lock.deferred()));
  }
  if (applier.has_value()) applier->Run();
  absl::MutexLock lock(&mutex_);
  ShardState now = StateNow();
  if (const EpochState* const state = gate_.state()) {
    state->mu.AssertHeld();
    // A version that its worker has not stored keeps its step open: another one is to store it.
    const bool is_stored = state->to_store.IsComplete(now.shard_step);
    if (state->variables.config.is_replicated() && is_stored) {
      now.shard_step = state->step.open_step();
    }
  }
  return now;
}

absl::Status Shard::EnterView(const View& view, EpochGate::Pass* ended,
                              std::optional<StepApplier>* applier, DeferredCallbacks* deferred) {
  const Term term = view_.term();
  const Epoch epoch = view_.epoch();
  const auto members = view_.members();
  const bool was_copy = view_.is_copy();
  const bool makes_copy = view.is_copy && view.makes_copy && view_.IsNew(view);
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  if (was_copy && !view.is_copy && view.epoch == epoch) {
    // A copy that cannot serve yet stays as it is: the chief that asks may die before it asks
    // again.
    LOCKSTEP_RETURN_IF_ERROR(ShardView(view_).SetView(view, Hosted()));
    LOCKSTEP_RETURN_IF_ERROR(BecomePrimary(view, deferred));
  }
  LOCKSTEP_RETURN_IF_ERROR(view_.SetView(view, Hosted()));
  if (view_.epoch() > epoch) {
    *ended = DropVariables(
        absl::AbortedError(absl::StrCat("the shard has entered epoch ", view_.epoch().value())),
        deferred);
  } else if (view_.is_copy() && !was_copy) {
    *ended = DropVariables(NowCopied(), deferred);
  } else if (makes_copy) {
    *ended = DropVariables(absl::AbortedError("the copy is made anew"), deferred);
  }
  const auto has_left = [this](WorkerIndex worker, Incarnation incarnation) {
    mutex_.AssertHeld();
    return !view_.IsMember(worker, incarnation);
  };
  readers_.parked.FailIf(
      [&](const ParkedPull& pull) { return has_left(pull.worker.worker, pull.worker.incarnation); },
      absl::AbortedError("the worker is no longer a member: register again"), deferred);
  absl::erase_if(readers_.unread, [this](const auto& of) {
    mutex_.AssertHeld();
    return !view_.IsMember(of.first);
  });
  if (EpochState* const state = gate_.state()) {
    state->mu.AssertHeld();
    state->reader.ForgetUnread(has_left);
    if (state->AnyCopy() == nullptr && !view.makes_copy) view_.GoOnAlone();
    if (std::shared_ptr<CopyTarget> left = UpdateCopy(/*is_new=*/true, state)) {
      deferred->Answer<bool>(
          [left = std::move(left)](const absl::StatusOr<bool>&) { left->End(absl::OkStatus()); },
          true);
    }
    // A copy's grants are no chief's: they came with the means that it applies.
    if (view_.term() > term && !view_.is_copy()) {
      state->driver->EndTerm(
          absl::AbortedError(absl::StrCat("the shard is in term ", view.command.term(),
                                          ": another chief commands")),
          deferred);
    }
    state->receiver.AbandonIf(
        [&](const PushKey& key) { return has_left(key.worker, key.incarnation); }, deferred);
    for (const auto& [worker, incarnation] : members) {
      if (has_left(worker, incarnation)) state->GiveBack(worker, deferred);
    }
    TakeReplicaViews(state);
    if (state->tokens != nullptr) {
      state->tokens->Answer(state->tokens->queue()->SetView(view_.members()), deferred);
    }
    if (state->variables.config.shrinks_with_members()) {
      state->step.LimitRequired(std::max<uint32_t>(1, static_cast<uint32_t>(view.members.size())));
      applier->emplace(gate_.Enter());
      (*applier)->TakeReady(deferred);
    }
  }
  return absl::OkStatus();
}

ShardView::Hosted Shard::Hosted() const {
  const EpochState* const state = gate_.state();
  if (state == nullptr) return ShardView::Hosted::kNothing;
  state->mu.AssertHeld();
  if (state->AwaitsState()) return ShardView::Hosted::kIncomplete;
  const bool is_copied = state->copy != nullptr && !state->copy->LacksState();
  return is_copied ? ShardView::Hosted::kCopied : ShardView::Hosted::kOnlyHere;
}

void Shard::TakeReplicaViews(EpochState* state) {
  const ReplicaViews& views = view_.replica_views();
  if (views.empty()) return;
  state->mu.AssertHeld();
  state->receiver.SetReplicas(views.newest().total(), views.newest().aggregate);
  if (state->tokens != nullptr) state->tokens->SetReplicaViews(views);
}

std::shared_ptr<CopyTarget> Shard::UpdateCopy(bool is_new, EpochState* state) {
  state->mu.AssertHeld();
  const std::string& address = view_.copy_address();
  if (address.empty()) return state->TakeCopy();
  if (state->AnyCopy() != nullptr || options_.make_copy_target == nullptr) return nullptr;
  const uint64_t number = ++copy_number_;
  (is_new ? state->new_copy : state->copy) = options_.make_copy_target(
      {.address = address,
       .host = view_.other_place(),
       .lease = view_.lease(),
       .shard = view_.shard(),
       .identity = {.job = view_.job(),
                    .epoch = view_.epoch(),
                    .worker = kPrimaryOfCopy.worker,
                    .incarnation = kPrimaryOfCopy.incarnation},
       .shared_bytes = SharedMeanBytes(state->variables),
       .checksums = state->variables.config.transport().checksums(),
       .is_new = is_new,
       .refused = [this, number](const absl::Status&) { Depose(number); },
       .lost = [this, number](const absl::Status&) { LoseCopy(number); }});
  return nullptr;
}

void Shard::LoseCopy(uint64_t number) {
  DeferringLock lock(&mutex_);
  EpochState* const state = gate_.state();
  if (state == nullptr || number != copy_number_) return;
  state->mu.AssertHeld();
  view_.GoOnAlone();
  // Ended before it is let go: one that is closed tells those that wait to show nothing.
  lock.deferred()->Answer<bool>(
      [left = state->TakeCopy()](const absl::StatusOr<bool>&) {
        if (left != nullptr) left->End(absl::OkStatus());
      },
      true);
}

// What it has taken is of steps that its primary has told nobody of, or that everybody knows. What
// it holds it will take, since the primary's means come with their grants. Then the chief grants
// the step at hand anew, to be closed by the workers' gradients.
absl::Status Shard::BecomePrimary(const View& view, DeferredCallbacks* deferred) {
  EpochState* const state = gate_.state();
  if (state != nullptr) {
    state->mu.AssertHeld();
    for (size_t variable = 0; variable < state->variables.catalog.size(); ++variable) {
      if (state->step.accumulator(variable).num_accumulated() == 0) continue;
      return absl::UnavailableError(absl::StrCat("the copy of shard ", view_.shard().value(),
                                                 " still applies step ",
                                                 state->step.shard_step().value(), ": try again"));
    }
    state->receiver.AbandonIf(
        [](const PushKey& key) { return key.incarnation == kPrimaryOfCopy.incarnation; }, deferred);
    state->driver->EndTerm(absl::AbortedError("the copy serves the workers now"), deferred);
    if (state->tokens != nullptr) state->tokens->Restore(view.committed, deferred);
  }
  view_.BecomePrimary();
  return absl::OkStatus();
}

absl::Status Shard::NowCopied() const {
  return absl::UnavailableError(absl::StrCat("the copy of shard ", view_.shard().value(),
                                             " serves the workers now, in place of this ps"));
}

void Shard::Depose(uint64_t number) {
  DeferringLock lock(&mutex_);
  if (number != copy_number_) return;
  view_.Depose();
  FailWaiting(NowCopied(), lock.deferred());
}

// Calls find the state no more. Variables that are being made come to nothing (CreateVariables).
EpochGate::Pass Shard::DropVariables(const absl::Status& why, DeferredCallbacks* deferred) {
  EpochGate::Pass pass = gate_.Enter();
  if (!pass) return pass;
  // Later reports of this target are ignored.
  ++copy_number_;
  FailWaiting(why, deferred);
  pass.state()->mu.AssertHeld();
  pass.state()->driver->EndEpoch();
  // What waits for it holds the epoch.
  if (auto copy = pass.state()->TakeCopy()) {
    deferred->Answer<bool>(
        [copy = std::move(copy)](const absl::StatusOr<bool>&) {
          copy->End(absl::AbortedError("the variables are dropped"));
        },
        true);
  }
  gate_.Close();
  return pass;
}

void Shard::FailWaiting(const absl::Status& status, DeferredCallbacks* deferred) {
  readers_.parked.FailIf([](const ParkedPull&) { return true; }, status, deferred);
  EpochState* const state = gate_.state();
  if (state == nullptr) return;
  state->mu.AssertHeld();
  state->driver->FailGrants(status, deferred);
  state->to_store.FailWaiting(status, deferred);
  if (state->tokens == nullptr) return;
  TokenQueue* const queue = state->tokens->queue();
  state->tokens->Answer(phase_ == Phase::kFinished ? queue->Finish() : queue->Drop(status),
                        deferred);
}

absl::StatusOr<std::optional<CreatedVariables>> Shard::FindCreated(
    const CreateVariablesRequest& request, EpochGate::Pass* dropped, DeferredCallbacks* deferred) {
  if (request.awaits_state() && !view_.is_copy()) {
    return absl::FailedPreconditionError(absl::StrCat("awaits_state: shard ", view_.shard().value(),
                                                      " serves the workers, and is no copy"));
  }
  const EpochState* const state = gate_.state();
  if (state == nullptr) return std::nullopt;
  state->mu.AssertHeld();
  if (state->variables.config.Fingerprint() != EpochConfig(request).Fingerprint()) {
    return absl::FailedPreconditionError(
        "the shard has been created from another placement, optimizer, seed, sync or number of "
        "replicas");
  }
  // A request that comes late finds what it has made, perhaps with all of the state.
  if (!request.awaits_state() || state->incoming != nullptr) return Created(*state);
  *dropped = DropVariables(absl::AbortedError("the copy is made anew"), deferred);
  return std::nullopt;
}

absl::StatusOr<CreatedVariables> Shard::CreateVariables(const CreateVariablesRequest& request) {
  const auto await_creation = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    mutex_.Await(absl::Condition(
        +[](Shard* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) {
          const bool is_left = self->gate_.state() != nullptr || self->gate_.IsEmpty();
          return !self->is_creating_ && is_left;
        },
        this));
  };
  Epoch epoch;
  ShardIndex shard;
  bool is_copy = false;
  while (true) {
    EpochGate::Pass dropped;
    DeferringLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(CheckServing());
    LOCKSTEP_RETURN_IF_ERROR(view_.CheckCommand(request.command()));
    await_creation();
    // Again: the view may have changed meanwhile.
    LOCKSTEP_RETURN_IF_ERROR(CheckServing());
    LOCKSTEP_RETURN_IF_ERROR(view_.CheckCommand(request.command()));
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<CreatedVariables> created,
                              FindCreated(request, &dropped, lock.deferred()));
    if (created.has_value()) return *std::move(created);
    // They are gone when nobody works on them any more.
    if (dropped) continue;
    is_creating_ = true;
    epoch = view_.epoch();
    shard = view_.shard();
    is_copy = view_.is_copy();
    break;
  }
  // What is made next may not fit beside it.
  gate_.AwaitFreed();
  auto created =
      CreateEpochState(request, shard, is_copy, {&mutex_, &options_, &pool_, &counts_, &readers_});
  absl::MutexLock lock(&mutex_);
  is_creating_ = false;
  if (!created.ok()) return created.status();
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  LOCKSTEP_RETURN_IF_ERROR(view_.CheckCommand(request.command()));
  if (view_.epoch() != epoch) {
    return absl::AbortedError(
        absl::StrCat("the shard has entered epoch ", view_.epoch().value(), " meanwhile"));
  }
  if (view_.is_copy() != is_copy) {
    return absl::AbortedError("the shard has changed its role meanwhile");
  }
  EpochState& state = **created;
  state.mu.AssertHeld();
  state.is_finished = phase_ == Phase::kFinished;
  state.driver->BeginStep();
  CreatedVariables told = Created(state);
  told.missing_slots = std::move(state.missing_slots);
  TakeReplicaViews(&state);
  UpdateCopy(/*is_new=*/false, &state);
  gate_.Open(*std::move(created));
  return told;
}

absl::Status Shard::Finish(const Command& command) {
  DeferringLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckServing());
  LOCKSTEP_RETURN_IF_ERROR(view_.CheckFinish(command));
  phase_ = Phase::kFinished;
  if (EpochState* const state = gate_.state()) {
    state->mu.AssertHeld();
    state->is_finished = true;
  }
  FailWaiting(JobOverError(), lock.deferred());
  return absl::OkStatus();
}

void Shard::Stop() {
  DeferringLock lock(&mutex_);
  phase_ = Phase::kStopped;
  FailWaiting(absl::UnavailableError("the parameter server is stopping"), lock.deferred());
}

}  // namespace lockstep::ps
