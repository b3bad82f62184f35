#include "ps/step/step_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::ps {
namespace {

void Renew(std::optional<GrantTerms>* terms, const GrantTerms& newer) {
  GrantTerms merged = newer;
  if (terms->has_value()) {
    merged.keep_values |= (*terms)->keep_values;
    merged.keep_slots |= (*terms)->keep_slots;
  }
  *terms = merged;
}

}  // namespace

StepMachine::StepMachine(GradientTurns turns, GlobalStep start, CountRule rule)
    : turns_(std::move(turns)), step_(start) {
  variables_.reserve(turns_.num_variables());
  for (size_t i = 0; i < turns_.num_variables(); ++i) variables_.push_back({{rule, start}});
  OpenVariables();
}

void StepMachine::OpenVariables() {
  open_ = 0;
  for (size_t variable = 0; variable < variables_.size(); ++variable) {
    if (Expects(variable)) {
      ++open_;
    } else {
      variables_[variable].accumulator.SetGlobalStep(step_.next());
    }
  }
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

GlobalStep StepMachine::open_step() const {
  bool is_taken = false;
  for (size_t variable = 0; variable < variables_.size(); ++variable) {
    if (!Expects(variable)) continue;
    if (!IsTaken(variable)) return step_;
    is_taken = true;
  }
  return is_taken ? step_.next() : step_;
}

void StepMachine::BeginEarly(size_t variable) {
  LOCKSTEP_CHECK(current_.has_value() && !IsTaken(variable));
  ++variables_[variable].early;
}

void StepMachine::EndEarly(size_t variable) {
  LOCKSTEP_CHECK(variables_[variable].early > 0);
  --variables_[variable].early;
}

std::optional<TakenVariable> StepMachine::TryTake(size_t variable) {
  VariableStep& entry = variables_[variable];
  if (!current_.has_value() || IsTaken(variable) || entry.early > 0) return std::nullopt;
  std::optional<TakenGradients> taken =
      entry.accumulator.Take(std::min(current_->required, most_required_));
  if (!taken.has_value()) return std::nullopt;
  return TakenVariable{variable, current_->learning_rate, *std::move(taken)};
}

std::vector<TakenVariable> StepMachine::TakeReady() {
  std::vector<TakenVariable> ready;
  for (size_t variable = 0; variable < variables_.size(); ++variable) {
    if (std::optional<TakenVariable> taken = TryTake(variable)) ready.push_back(*std::move(taken));
  }
  return ready;
}

void StepMachine::Published(size_t variable) {
  LOCKSTEP_CHECK(IsTaken(variable) && open_ > 0);
  --open_;
}

bool StepMachine::IsQuiet() const {
  size_t taken = 0;
  for (size_t variable = 0; variable < variables_.size(); ++variable) taken += IsTaken(variable);
  return taken == variables_.size() - open_;
}

bool StepMachine::IsEmpty() const {
  for (size_t variable = 0; variable < variables_.size(); ++variable) {
    if (turns_.IsTrained(variable)) return false;
  }
  return true;
}

bool StepMachine::IsUntouched() const {
  for (size_t i = 0; i < variables_.size(); ++i) {
    const VariableStep& variable = variables_[i];
    const bool is_open = variable.accumulator.global_step() == step_ && variable.early == 0;
    if (Expects(i) && !is_open) return false;
  }
  return true;
}

void StepMachine::RestartAt(GlobalStep step) {
  Revoke();
  step_ = step;
  for (VariableStep& variable : variables_) {
    LOCKSTEP_CHECK(variable.accumulator.num_accumulated() == 0 && variable.early == 0);
    variable.accumulator.SetGlobalStep(step);
  }
  OpenVariables();
}

void StepMachine::Advance() {
  LOCKSTEP_CHECK(IsComplete());
  step_ = step_.next();
  OpenVariables();
  current_ = std::exchange(next_, std::nullopt);
}

}  // namespace lockstep::ps
