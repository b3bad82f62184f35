#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/limits.h"
#include "ps/shard/shard_impl.h"
#include "ps/shard/take_snapshot.h"

namespace lockstep::ps {

bool Shard::Impl::HasStopped(const EpochState& state) const {
  return state.asynchronous.has_value() && state.asynchronous->stopped;
}

void Shard::Impl::GrantItself(EpochState* state) {
  AsynchronousState& asynchronous = *state->asynchronous;
  const GlobalStep step = state->step.shard_step();
  asynchronous.stopped |= asynchronous.end.has_value() && step >= *asynchronous.end;
  // Where nothing takes gradients there is nothing that a step could wait for.
  if (asynchronous.stopped || asynchronous.paused || state->step.IsEmpty()) return;
  if (is_leaving_) return;
  GrantTerms terms{.required = 1,
                   .learning_rate = LearningRateAt(asynchronous.learning_rate, step),
                   .commit = state->tokens != nullptr,
                   .last = step.next() == asynchronous.end};
  for (const ParkedGrant& grant : grants_) {
    if (grant.step != step) continue;
    terms.keep_values |= grant.keep_values;
    terms.keep_slots |= grant.keep_slots;
  }
  const auto granted = state->step.Grant(step, terms);
  LOCKSTEP_CHECK(granted.ok());
}

void Shard::Impl::ParkMilestone(const GrantOrder& order, Callback<ClosedStep>* done,
                                DeferredCallbacks* deferred) {
  EpochState& state = *state_;
  const bool waits = state.tokens != nullptr && order.step >= state.step.shard_step();
  if (!waits && !order.keep_values && !order.keep_slots && !order.last) {
    return deferred->Answer<ClosedStep>(std::move(*done), ClosedNow(order.step));
  }
  const auto parked = std::find_if(grants_.begin(), grants_.end(), [&](const ParkedGrant& grant) {
    return grant.step == order.step;
  });
  if (parked != grants_.end()) {
    deferred->Answer<ClosedStep>(
        std::move(parked->done),
        absl::CancelledError(absl::StrCat("step ", order.step.value(), " was granted again")));
    grants_.erase(parked);
  }
  if (grants_.size() >= limits::kMaxParkedGrants) {
    return deferred->Answer<ClosedStep>(
        std::move(*done), absl::ResourceExhaustedError(absl::StrCat(
                              "grant of step ", order.step.value(), ": ", grants_.size(),
                              " grants wait for their steps, and no more may")));
  }
  grants_.push_back(
      {order.step, std::move(*done), order.keep_values, order.keep_slots, !waits, order.last});
  if (waits) return GrantItself(&state);
  state.asynchronous->paused = true;
  state.step.Revoke();
}

ClosedStep Shard::Impl::ClosedNow(GlobalStep step) const {
  ClosedStep closed{step, state_->step.shard_step(), accepted_, stale_, {}};
  if (step.next() == closed.shard_step) closed.statistics = state_->last_closed.statistics;
  return closed;
}

bool Shard::Impl::KeepNow(EpochState* state, std::vector<TakenVariable>* all_taken) {
  if (!state->asynchronous.has_value()) return false;
  GrantTerms terms;
  {
    absl::MutexLock lock(&mutex_);
    if (!state->asynchronous->paused || state->is_completing || !state->step.IsQuiet()) {
      return false;
    }
    state->is_completing = true;
    for (const ParkedGrant& grant : grants_) {
      terms.keep_values |= grant.now && grant.keep_values;
      terms.keep_slots |= grant.now && grant.keep_slots;
    }
  }
  if (!CopiesLong(*state, terms)) return KeepNow(state, terms, all_taken);
  DoInBackground([this, state, terms] {
    std::vector<TakenVariable> all_taken;
    KeepNow(state, terms, &all_taken);
    ApplyAndPublish(state, std::move(all_taken));
  });
  return false;
}

bool Shard::Impl::KeepNow(EpochState* state, const GrantTerms& terms,
                          std::vector<TakenVariable>* all_taken) {
  // Copying takes long; no variable closes meanwhile, because nothing is granted.
  const std::shared_ptr<Snapshot> snapshot = TakeSnapshot(*state, terms);
  DeferredCallbacks deferred;
  bool has_more = false;
  {
    absl::MutexLock lock(&mutex_);
    state->is_completing = false;
    if (snapshot != nullptr) snapshot->scalars = state->scalars;
    AnswerNow(state, snapshot, &deferred);
    state->asynchronous->paused = std::any_of(grants_.begin(), grants_.end(),
                                              [](const ParkedGrant& grant) { return grant.now; });
    GrantItself(state);
    *all_taken = CloseReady(state, &deferred);
    has_more = !all_taken->empty() || state->step.IsComplete() || state->asynchronous->paused;
  }
  deferred.Run();
  return has_more;
}

// Those that the snapshot satisfies; one that came meanwhile may want more.
void Shard::Impl::AnswerNow(EpochState* state, const std::shared_ptr<Snapshot>& snapshot,
                            DeferredCallbacks* deferred) {
  const auto is_answered = [&](ParkedGrant& grant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!grant.now) return false;
    const GrantTerms wanted{.keep_values = grant.keep_values, .keep_slots = grant.keep_slots};
    if (!Satisfies(snapshot.get(), wanted)) return false;
    if (wanted.keep_values || wanted.keep_slots) {
      state->snapshots.Keep(grant.step.next(), snapshot);
    }
    state->asynchronous->stopped |= grant.last;
    deferred->Answer<ClosedStep>(std::move(grant.done), ClosedNow(grant.step));
    return true;
  };
  grants_.erase(std::remove_if(grants_.begin(), grants_.end(), is_answered), grants_.end());
}

}  // namespace lockstep::ps
