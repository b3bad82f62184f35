// An operation that may close variables: takes their gradients under the shard's lock, makes the
// next values without it, and publishes them. The one that publishes the last variable of a step
// completes the step and takes what is ready of the next. With a copy they are published when that
// has their means and, if it lacks state, a part of it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ps/shard/epoch_gate.h"
#include "ps/shard/epoch_state.h"

namespace lockstep::ps {

// Of one thread. Inside the epoch for as long as it exists.
class StepApplier {
 public:
  explicit StepApplier(EpochGate::Pass pass) : pass_(std::move(pass)), state_(pass_.state()) {}

  // To be called after a grant has come; the caller holds the shard's lock.
  void TakeReady(DeferredCallbacks* deferred);
  // The same where no gradient waits for the grant.
  void PassMilestones(DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
    PassMilestones(/*is_copied=*/false, deferred);
  }
  // Applies what has been taken, and goes on as long as there is something to do.
  void Run() ABSL_LOCKS_EXCLUDED(state_->mu);

 protected:
  // Takes the variable's gradients where it can close now. False: it cannot.
  bool TryTake(size_t variable, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  EpochGate::Pass pass_;
  EpochState* state_;
  // Threads of the pool change these under the lock while this operation applies.
  std::vector<TakenVariable> taken_;
  bool has_stopped_ = false;  // StepDriver::has_stopped, when this operation last looked

 private:
  void OnTaken(TakenVariable taken, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void ApplyRows(TakenVariable* taken) ABSL_LOCKS_EXCLUDED(state_->mu);
  // On any threads of the pool: each group is published as soon as it is whole.
  void ApplyDense(absl::Span<TakenVariable> taken) ABSL_LOCKS_EXCLUDED(state_->mu);
  // What Publish needs, until the copy has answered.
  struct Unshown;
  // What a copy that lacks state gets before the step is over.
  struct StatePart;

  // At once, or when the copy has the means.
  void Show(absl::Span<TakenVariable> taken, absl::Span<NextValue> next,
            std::vector<MeanGradient> means) ABSL_LOCKS_EXCLUDED(state_->mu);
  // Shows it when the copy has the means.
  static void Send(CopyTarget* copy, StepMeans means, const std::shared_ptr<StepApplier>& rest,
                   const std::shared_ptr<Unshown>& unshown);
  // The copy has the means; `rest` goes on with them.
  static void OnCopied(const std::shared_ptr<StepApplier>& rest,
                       const std::shared_ptr<Unshown>& unshown);
  // nullopt: they are published. Otherwise they end the step, and the part is to be sent before.
  std::optional<StatePart> PublishOrPart(Unshown* unshown) ABSL_LOCKS_EXCLUDED(state_->mu);
  void Publish(Unshown* unshown) ABSL_LOCKS_EXCLUDED(state_->mu);
  void Publish(Unshown* unshown, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void Publish(absl::Span<TakenVariable> taken, absl::Span<NextValue> next)
      ABSL_LOCKS_EXCLUDED(state_->mu);
  void Publish(absl::Span<TakenVariable> taken, absl::Span<NextValue> next,
               DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // Until nothing is complete. `is_copied`: the copy knows of the step at hand.
  void PassMilestones(bool is_copied, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // True: a copy must know of the step at hand, which has no gradients, before it closes.
  bool TellCopy(DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void AdvanceStep(DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // The step that begins is the first of which the new copy gets the means.
  void BeginCopy(DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void Keep(GlobalStep version, const GrantTerms& terms, std::shared_ptr<Snapshot> snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  // Of the epoch, as of the last take; null: what is made is shown at once.
  std::shared_ptr<CopyTarget> copy_;
};

}  // namespace lockstep::ps
