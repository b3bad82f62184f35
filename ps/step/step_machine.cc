#include "ps/step/step_machine.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "ps/accumulator/staleness.h"

namespace lockstep::ps {
namespace {

bool SumsBefore(const HeldGradient& a, const HeldGradient& b) {
  return std::tie(a.worker, a.push_seq) < std::tie(b.worker, b.push_seq);
}

void Renew(std::optional<GrantTerms>* terms, const GrantTerms& newer) {
  GrantTerms merged = newer;
  if (terms->has_value()) {
    merged.keep_values |= (*terms)->keep_values;
    merged.keep_slots |= (*terms)->keep_slots;
  }
  *terms = merged;
}

}  // namespace

StepMachine::StepMachine(size_t num_variables, GlobalStep start, CountRule rule,
                         std::optional<int64_t> max_staleness, std::optional<GlobalStep> end)
    : rule_(rule),
      max_staleness_(max_staleness),
      end_(end),
      step_(start),
      variables_(num_variables),
      per_step_(num_variables),
      open_(num_variables) {
  for (VariableStep& variable : variables_) variable.step = start;
}

void StepMachine::Freeze(size_t variable) {
  VariableStep& entry = variables_[variable];
  if (std::exchange(entry.is_frozen, true)) return;
  entry.step = step_.next();
  --per_step_;
  --open_;
}

bool StepMachine::IsStale(size_t variable, GlobalStep local_step) const {
  const GlobalStep step = StepOf(variable);
  if (rule_ != CountRule::kOneByOne) return ps::IsStale(local_step, step);
  const auto num_held = static_cast<int64_t>(Held(variable).size());
  const int64_t own_step = step.value() + num_held;  // the one that it would be
  if (end_.has_value() && own_step >= end_->value()) return true;
  return max_staleness_.has_value() && local_step.value() < own_step - *max_staleness_;
}

bool StepMachine::IsCounted(size_t variable, WorkerIndex worker) const {
  if (rule_ != CountRule::kOncePerReplica) return false;
  return FindHeld(variable, worker) != nullptr;
}

const HeldGradient* StepMachine::FindHeld(size_t variable, WorkerIndex worker) const {
  const std::vector<HeldGradient>& held = variables_[variable].held;
  const auto found = std::ranges::lower_bound(held, worker, {}, &HeldGradient::worker);
  return found != held.end() && found->worker == worker ? &*found : nullptr;
}

void StepMachine::Hold(size_t variable, HeldGradient gradient) {
  LOCKSTEP_CHECK(!IsStale(variable, gradient.local_step));
  LOCKSTEP_CHECK(!IsCounted(variable, gradient.worker));
  std::vector<HeldGradient>& held = variables_[variable].held;
  const auto place = rule_ == CountRule::kOneByOne
                         ? held.end()
                         : std::upper_bound(held.begin(), held.end(), gradient, SumsBefore);
  held.insert(place, std::move(gradient));
}

absl::StatusOr<StepMachine::Granted> StepMachine::Grant(GlobalStep step, const GrantTerms& terms) {
  if (terms.required == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("grant of step ", step.value(), ": required must be positive, got 0"));
  }
  if (step < step_) return Granted::kOver;
  if (step == step_) {
    Renew(&current_, terms);
    return Granted::kCurrent;
  }
  if (step == step_.next()) {
    Renew(&next_, terms);
    return Granted::kNext;
  }
  return absl::FailedPreconditionError(absl::StrCat("grant of step ", step.value(),
                                                    ": the shard is at step ", step_.value(),
                                                    " and takes grants for this and the next one"));
}

void StepMachine::Revoke() {
  current_.reset();
  next_.reset();
}

void StepMachine::BeginEarly(size_t variable) {
  LOCKSTEP_CHECK(current_.has_value() && !IsTaken(variable));
  ++variables_[variable].early;
}

void StepMachine::EndEarly(size_t variable) {
  LOCKSTEP_CHECK(variables_[variable].early > 0);
  --variables_[variable].early;
}

std::optional<TakenGradients> StepMachine::TryClose(size_t variable) {
  VariableStep& entry = variables_[variable];
  if (!current_.has_value() || IsTaken(variable) || entry.early > 0) return std::nullopt;
  if (entry.held.size() < current_->required) return std::nullopt;
  TakenGradients taken{variable, step_, current_->required, current_->learning_rate, {}};
  if (rule_ == CountRule::kOneByOne) {
    taken.gradients.push_back(std::move(entry.held.front()));
    entry.held.erase(entry.held.begin());
  } else {
    taken.gradients = std::exchange(entry.held, {});
  }
  entry.step = step_.next();
  return taken;
}

std::vector<TakenGradients> StepMachine::CloseReady() {
  std::vector<TakenGradients> ready;
  for (size_t variable = 0; variable < variables_.size(); ++variable) {
    if (std::optional<TakenGradients> taken = TryClose(variable))
      ready.push_back(std::move(*taken));
  }
  return ready;
}

void StepMachine::Published(size_t variable) {
  LOCKSTEP_CHECK(IsTaken(variable) && open_ > 0);
  --open_;
}

bool StepMachine::IsQuiet() const {
  const auto taken = std::count_if(variables_.begin(), variables_.end(),
                                   [this](const VariableStep& v) { return v.step > step_; });
  return static_cast<size_t>(taken) == variables_.size() - open_;
}

bool StepMachine::IsUntouched() const {
  return std::ranges::all_of(variables_, [this](const VariableStep& variable) {
    return variable.is_frozen || (variable.step == step_ && variable.early == 0);
  });
}

void StepMachine::Advance() {
  LOCKSTEP_CHECK(IsComplete());
  step_ = step_.next();
  for (VariableStep& variable : variables_) {
    if (variable.is_frozen) variable.step = step_.next();
  }
  open_ = per_step_;
  current_ = std::exchange(next_, std::nullopt);
}

}  // namespace lockstep::ps
