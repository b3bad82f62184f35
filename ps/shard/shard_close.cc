#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/update/sparse_update.h"
#include "common/update/update_batch.h"
#include "ps/shard/shard_impl.h"
#include "ps/shard/take_snapshot.h"

namespace lockstep::ps {
namespace {

// With fewer parts to make, a helper would still be waiting for a core when all is made.
constexpr size_t kPartsForHelpers = 5;

// Copying so much keeps a thread for less than a millisecond.
constexpr uint64_t kCopiedAtOnce = uint64_t{1} << 20;

// Statistics up to this size travel with the closed step: the loss among them.
constexpr int64_t kMaxStatisticElements = 16;

SmallStatistic Summary(const CatalogEntry& entry, const Tensor& value, size_t count) {
  SmallStatistic statistic{entry.id, {}, static_cast<uint32_t>(count)};
  if (value.dtype() == DType::kFloat32) {
    const std::span<const float> elements = value.as<float>();
    statistic.values.assign(elements.begin(), elements.end());
  } else {
    for (const double element : value.as<double>()) {
      statistic.values.push_back(static_cast<float>(element));
    }
  }
  return statistic;
}

bool IsSparse(const EpochState& state, const TakenVariable& taken) {
  return state.catalog[taken.variable].is_sparse;
}

DenseUpdate BeginDense(const EpochState& state, const TakenVariable& of) {
  VariableEntry& hosted = *state.variables[of.variable];
  std::optional<DenseUpdate> update = std::exchange(hosted.early.update, std::nullopt);
  if (!update.has_value()) {
    update.emplace(of.taken.step, of.learning_rate, *hosted.rule, state.scalars, &hosted.variable);
  }
  DenseUpdate::GradientSources gradients;
  for (const HeldGradient& held : of.taken.gradients) gradients.push_back(SourceOf(held.gradient));
  update->SetGradients(std::move(gradients), of.taken.divisor);
  return *std::move(update);
}

NextValue ComputeRows(const EpochState& state, const TakenVariable& of, RunRanges run) {
  VariableEntry& hosted = *state.variables[of.variable];
  Variable& variable = hosted.variable;
  absl::InlinedVector<IndexedSlicesView, 4> gradients;
  for (const HeldGradient& held : of.taken.gradients) {
    gradients.push_back(SlicesOf(held.gradient, variable.dtype(), variable.shape()));
  }
  absl::MutexLockMaybe lock(hosted.table == nullptr ? nullptr : &hosted.table->mutex);
  SparseUpdate update(of.taken.step, of.learning_rate, *hosted.rule, state.scalars, &variable);
  return update.Make(gradients, run);
}

}  // namespace

void Shard::Impl::Grant(const GrantOrder& order, Callback<ClosedStep> done) {
  EpochState* state = nullptr;
  std::vector<TakenVariable> all_taken;
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    if (const absl::Status status = ParkGrant(order, &done, &deferred); !status.ok()) {
      deferred.Answer<ClosedStep>(std::move(done), status);
    } else {
      all_taken = CloseReady(state_.get(), &deferred);
      const bool is_paused = state_->asynchronous.has_value() && state_->asynchronous->paused;
      if (!all_taken.empty() || state_->step.IsComplete() || is_paused) {
        state = state_.get();
        ++in_flight_;
      }
    }
  }
  deferred.Run();
  if (state != nullptr) ApplyAndPublish(state, std::move(all_taken));
}

absl::Status Shard::Impl::ParkGrant(const GrantOrder& order, Callback<ClosedStep>* done,
                                    DeferredCallbacks* deferred) {
  LOCKSTEP_RETURN_IF_ERROR(AdmitCommand(order.command));
  if (phase_ == Phase::kFinished) return absl::FailedPreconditionError("the job is over");
  EpochState& state = *state_;
  if (state.is_copied) {
    return absl::UnavailableError("the shard copies its variables for a checkpoint: try again");
  }
  if (state.config.applies_early_chunks() &&
      order.required != state.config.replicas_to_aggregate()) {
    return absl::InvalidArgumentError(
        absl::StrCat("grant of step ", order.step.value(), ": required is ", order.required,
                     ", and each step takes one gradient of every replica: ",
                     state.config.replicas_to_aggregate()));
  }
  if (order.commit && (state.tokens == nullptr || state.config.placement().shards() != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("grant of step ", order.step.value(),
                     " with commit: only where one shard has all variables, not with ",
                     state.config.placement().shards()));
  }
  // A step that is at hand now will not be committed by one before it.
  if (order.commit && order.step == state.step.shard_step() && order.step > state.global_step) {
    return absl::FailedPreconditionError(
        absl::StrCat("grant of step ", order.step.value(), " with commit: the job is at step ",
                     state.global_step.value(), ". Remedy: commit the steps before it first"));
  }
  if (state.asynchronous.has_value()) {
    ParkMilestone(order, done, deferred);
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const StepMachine::Granted granted,
      state.step.Grant(order.step, {order.required, order.learning_rate, order.keep_values,
                                    order.keep_slots, order.commit, order.last}));
  if (granted == StepMachine::Granted::kOver) {
    if (order.commit) LOCKSTEP_RETURN_IF_ERROR(Commit(order.step, order.last, deferred));
    deferred->Answer<ClosedStep>(std::move(*done), ClosedNow(order.step));
    return absl::OkStatus();
  }
  // The last step has been committed, and yet there is another one: a chief that came after it.
  if (state.tokens != nullptr) AnswerDequeues(state.tokens->Reopen(state.global_step), deferred);
  const auto parked = std::find_if(grants_.begin(), grants_.end(), [&](const ParkedGrant& grant) {
    return grant.step == order.step;
  });
  if (parked == grants_.end()) {
    grants_.push_back({order.step, std::move(*done)});
  } else {
    std::swap(parked->done, *done);
    deferred->Answer<ClosedStep>(
        std::move(*done),
        absl::CancelledError(absl::StrCat("step ", order.step.value(), " was granted again")));
  }
  return absl::OkStatus();
}

void Shard::Impl::OnTaken(EpochState* state, const TakenVariable& taken,
                          DeferredCallbacks* deferred) {
  if (state->asynchronous.has_value()) {
    for (const HeldGradient& gradient : taken.taken.gradients) {
      state->asynchronous->staleness.Add(
          SaturatingSubtract(taken.taken.step.value(), gradient.local_step.value()));
    }
  }
  VariableEntry& hosted = *state->variables[taken.variable];
  deferred->LetGo(hosted.variable.DropPrevious());
  std::ranges::fill(hosted.early.arrived, 0);
  state->budget.Close(taken.variable);
  ReassemblyBuffer::Removed losers =
      state->reassembly.RemoveIf(taken.variable, [&](const PartialGradient& gradient) {
        return state->step.accumulator(taken.variable).IsStale(gradient.local_step);
      });
  for (const std::shared_ptr<PartialGradient>& loser : losers) {
    Decide(state, loser->key, loser->variable, PushStatus::kStale);
  }
  Abandon(state, std::move(losers), deferred);
}

bool Shard::Impl::TryClose(EpochState* state, size_t variable,
                           std::vector<TakenVariable>* all_taken, DeferredCallbacks* deferred) {
  std::optional<TakenVariable> taken = state->step.TryTake(variable);
  if (!taken.has_value()) return false;
  OnTaken(state, *taken, deferred);
  all_taken->push_back(*std::move(taken));
  return true;
}

std::vector<TakenVariable> Shard::Impl::CloseReady(EpochState* state, DeferredCallbacks* deferred) {
  std::vector<TakenVariable> all_taken = state->step.TakeReady();
  for (const TakenVariable& taken : all_taken) OnTaken(state, taken, deferred);
  return all_taken;
}

bool Shard::Impl::ApplyAndPublish(EpochState* state, std::vector<TakenVariable> all_taken) {
  do {
    const auto dense =
        std::stable_partition(all_taken.begin(), all_taken.end(),
                              [&](const TakenVariable& taken) { return IsSparse(*state, taken); });
    const auto num_sparse = static_cast<size_t>(dense - all_taken.begin());
    // One after the other: the rows of each are a loop on all threads.
    for (size_t i = 0; i < num_sparse; ++i) CloseRows(state, &all_taken[i]);
    CloseDense(state, absl::MakeSpan(all_taken).subspan(num_sparse));
    all_taken.clear();
  } while (CompleteStep(state, &all_taken) || KeepNow(state, &all_taken));
  DeferredCallbacks deferred;
  bool has_stopped = false;
  {
    absl::MutexLock lock(&mutex_);
    has_stopped = HasStopped(*state);
    EndFlight(&deferred);
  }
  deferred.Run();
  return has_stopped;
}

void Shard::Impl::CloseRows(EpochState* state, TakenVariable* taken) {
  const auto run = [this](size_t count, size_t step, absl::FunctionRef<void(size_t, size_t)> work) {
    pool_.ForRanges(count, step, work);
  };
  NextValue next = ComputeRows(*state, *taken, run);
  Publish(state, absl::MakeSpan(taken, 1), absl::MakeSpan(&next, 1));
}

void Shard::Impl::CloseDense(EpochState* state, absl::Span<TakenVariable> all_taken) {
  std::vector<DenseUpdate> updates;
  updates.reserve(all_taken.size());
  for (const TakenVariable& taken : all_taken) updates.push_back(BeginDense(*state, taken));
  UpdateBatch together(std::move(updates));
  const auto make = [&](size_t part) {
    UpdateBatch::Group whole;
    if (!together.Make(part, &whole)) return;
    absl::InlinedVector<NextValue, 4> next;
    for (size_t i = whole.first; i < whole.end; ++i) next.push_back(together.update(i).Finish());
    Publish(state, all_taken.subspan(whole.first, next.size()), absl::MakeSpan(next));
  };
  const size_t num_parts = together.num_parts();
  const size_t at_a_time = num_parts < kPartsForHelpers ? kPartsForHelpers : 1;
  pool_.ForRanges(num_parts, at_a_time, [&](size_t begin, size_t end) {
    for (size_t part = begin; part < end; ++part) make(part);
  });
}

void Shard::Impl::Publish(EpochState* state, absl::Span<TakenVariable> all_taken,
                          absl::Span<NextValue> next) {
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < all_taken.size(); ++i) {
      TakenVariable& taken = all_taken[i];
      const CatalogEntry& entry = state->catalog[taken.variable];
      if (!entry.trainable && next[i].value->num_elements() <= kMaxStatisticElements) {
        state->statistics.push_back(Summary(entry, *next[i].value, taken.taken.gradients.size()));
      }
      VariableEntry& hosted = *state->variables[taken.variable];
      hosted.variable.Publish(std::move(next[i]));
      const uint64_t before = std::exchange(hosted.extra_bytes, hosted.variable.ExtraBytes());
      state->extra_bytes += hosted.extra_bytes - before;
      for (HeldGradient& gradient : taken.taken.gradients) {
        Release(state, taken.variable, std::move(gradient.gradient.value),
                std::move(gradient.gradient.parts), &deferred);
      }
      state->step.Published(taken.variable);
    }
    // After all of them: a pull of several finds them at once.
    for (const TakenVariable& taken : all_taken) RetryPulls(taken.variable, &deferred);
  }
  deferred.Run();
}

// True when there is more to do: `all_taken`, or a further step that needs nothing else.
bool Shard::Impl::CompleteStep(EpochState* state, std::vector<TakenVariable>* all_taken) {
  GrantTerms terms;
  {
    absl::MutexLock lock(&mutex_);
    if (!state->step.IsComplete() || state->is_completing) return false;
    state->is_completing = true;
    terms = *state->step.terms();
  }
  if (!CopiesLong(*state, terms)) return CompleteStep(state, terms, all_taken);
  DoInBackground([this, state, terms] {
    std::vector<TakenVariable> all_taken;
    CompleteStep(state, terms, &all_taken);
    ApplyAndPublish(state, std::move(all_taken));
  });
  return false;
}

bool Shard::Impl::CopiesLong(const EpochState& state, const GrantTerms& terms) const {
  return options_.run_in_background != nullptr && SnapshotBytes(state, terms) > kCopiedAtOnce;
}

bool Shard::Impl::CompleteStep(EpochState* state, GrantTerms terms,
                               std::vector<TakenVariable>* all_taken) {
  while (true) {
    // Copying takes long; no variable closes meanwhile, because the next step has not begun.
    std::shared_ptr<Snapshot> snapshot = TakeSnapshot(*state, terms);
    DeferredCallbacks deferred;
    bool has_more = false;
    {
      absl::MutexLock lock(&mutex_);
      if (state->step.IsComplete() && !Satisfies(snapshot.get(), *state->step.terms())) {
        terms = *state->step.terms();  // granted again meanwhile, with more to keep
        continue;
      }
      state->is_completing = false;
      if (state->step.IsComplete()) {  // not withdrawn by a new chief's view
        AdvanceStep(state, std::move(snapshot), &deferred);
        *all_taken = CloseReady(state, &deferred);
        has_more = !all_taken->empty() || state->step.IsComplete();
      }
    }
    deferred.Run();
    return has_more;
  }
}

// What does not change has every version that the others have.
void Shard::Impl::PublishFrozen(EpochState* state, DeferredCallbacks* deferred) {
  for (size_t i = 0; i < state->catalog.size(); ++i) {
    if (!state->catalog[i].is_frozen) continue;
    state->variables[i]->variable.PublishUnchanged();
    RetryPulls(i, deferred);
  }
}

void Shard::Impl::AdvanceStep(EpochState* state, std::shared_ptr<Snapshot> snapshot,
                              DeferredCallbacks* deferred) {
  const GrantTerms terms = *state->step.terms();
  const GlobalStep step = state->step.shard_step();
  state->rule->AdvanceScalars(absl::MakeSpan(state->scalars));
  if (snapshot != nullptr) {
    snapshot->scalars = state->scalars;
    state->snapshots.Keep(step.next(), std::move(snapshot));
  }
  state->step.Advance();
  PublishFrozen(state, deferred);
  if (state->asynchronous.has_value()) GrantItself(state);
  const absl::Status committed =
      terms.commit ? Commit(step, terms.last, deferred) : absl::OkStatus();
  std::ranges::sort(state->statistics, {}, &SmallStatistic::variable);
  state->last_closed = {step, state->step.shard_step(), accepted_, stale_,
                        std::exchange(state->statistics, {})};
  const auto parked = std::find_if(grants_.begin(), grants_.end(),
                                   [&](const ParkedGrant& grant) { return grant.step == step; });
  if (parked == grants_.end()) return;  // withdrawn with its term
  if (committed.ok()) {
    deferred->Answer<ClosedStep>(std::move(parked->done), state->last_closed);
  } else {
    deferred->Answer<ClosedStep>(std::move(parked->done), committed);
  }
  grants_.erase(parked);
}

}  // namespace lockstep::ps
