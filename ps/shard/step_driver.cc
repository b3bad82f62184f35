#include "ps/shard/step_driver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/grants_ahead.h"
#include "common/base/status_macros.h"

namespace lockstep::ps {

static_assert(kGrantsAhead <= limits::kMaxParkedGrants);

absl::Status StepDriver::Park(const GrantArguments& arguments, Callback<ClosedStep>* done,
                              DeferredCallbacks* deferred) {
  const EpochConfig& config = owners_.variables->config;
  if (config.applies_early_chunks() && arguments.required != config.replicas_to_aggregate()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "grant of step ", arguments.step.value(), ": required is ", arguments.required,
        ", and each step takes one gradient of every replica: ", config.replicas_to_aggregate()));
  }
  if (arguments.commit && (owners_.tokens == nullptr || config.placement().shards() != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("grant of step ", arguments.step.value(),
                     " with commit: only where one shard has all variables, not with ",
                     config.placement().shards()));
  }
  // A step that is at hand now will not be committed by one before it.
  if (arguments.commit && arguments.step == owners_.step->shard_step() &&
      arguments.step > owners_.tokens->global_step()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "grant of step ", arguments.step.value(), " with commit: the job is at step ",
        owners_.tokens->global_step().value(), ". Remedy: commit the steps before it first"));
  }
  return ParkGrant(arguments, done, deferred);
}

void StepDriver::FailGrants(const absl::Status& status, DeferredCallbacks* deferred) {
  for (ParkedGrant& grant : std::exchange(grants_, {})) {
    deferred->Answer<ClosedStep>(std::move(grant.done), status);
  }
}

void StepDriver::EndTerm(const absl::Status& status, DeferredCallbacks* deferred) {
  // An asynchronous shard goes on.
  if (!owners_.variables->config.is_asynchronous()) owners_.step->Revoke();
  FailGrants(status, deferred);
}

void StepDriver::CancelGrant(GlobalStep step, DeferredCallbacks* deferred) {
  const auto parked = std::ranges::find(grants_, step, &ParkedGrant::step);
  if (parked == grants_.end()) return;
  deferred->Answer<ClosedStep>(
      std::move(parked->done),
      absl::UnavailableError(absl::StrCat("step ", step.value(), " was granted again")));
  grants_.erase(parked);
}

std::optional<Milestone> StepDriver::NextMilestone() const {
  if (!owners_.step->IsComplete()) return MilestoneOfOpenStep();
  // Workers go on from a version when the step that it begins closes.
  if (!owners_.to_store->IsComplete(owners_.step->shard_step())) return std::nullopt;
  return Milestone{*owners_.step->terms(), true};
}

void StepDriver::AnswerClosed(GlobalStep step, const absl::Status& committed,
                              DeferredCallbacks* deferred) {
  std::ranges::sort(statistics_, {}, &SmallStatistic::variable);
  recent_statistics_[IndexOf(step)] = {step, std::exchange(statistics_, {})};
  const auto parked = std::ranges::find(grants_, step, &ParkedGrant::step);
  if (parked == grants_.end()) return;  // withdrawn with its term
  if (committed.ok()) {
    deferred->Answer<ClosedStep>(std::move(parked->done), ClosedNow(step));
  } else {
    deferred->Answer<ClosedStep>(std::move(parked->done), committed);
  }
  grants_.erase(parked);
}

ClosedStep StepDriver::ClosedNow(GlobalStep step) const {
  ClosedStep closed{
      step, owners_.step->shard_step(), owners_.counts->accepted, owners_.counts->stale, {}};
  const StepStatistics& told = recent_statistics_[IndexOf(step)];
  if (told.step == step) closed.statistics = told.statistics;
  return closed;
}

absl::Status StepDriver::ParkGrant(const GrantArguments& arguments, Callback<ClosedStep>* done,
                                   DeferredCallbacks* deferred) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const StepMachine::Granted granted,
      owners_.step->Grant(arguments.step,
                          {arguments.required, arguments.learning_rate, arguments.keep_values,
                           arguments.keep_slots, arguments.commit, arguments.last}));
  TokenServer* const tokens = owners_.tokens;
  if (granted == StepMachine::Granted::kOver) {
    if (arguments.commit) {
      LOCKSTEP_RETURN_IF_ERROR(
          tokens->Commit(arguments.step, arguments.last, owners_.step->shard_step(), deferred));
    }
    deferred->Answer<ClosedStep>(std::move(*done), ClosedNow(arguments.step));
    return absl::OkStatus();
  }
  // The last step has been committed, and yet there is another one: a chief that came after it.
  if (tokens != nullptr) tokens->Answer(tokens->queue()->Reopen(tokens->global_step()), deferred);
  CancelGrant(arguments.step, deferred);
  grants_.push_back({arguments.step, std::move(*done)});
  return absl::OkStatus();
}

}  // namespace lockstep::ps
