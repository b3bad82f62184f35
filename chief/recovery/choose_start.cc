#include "chief/recovery/choose_start.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace lockstep::chief {
namespace {

bool HasProgress(const SetViewReply& view) {
  return view.has_variables() && (view.shard_step() > 0 || view.global_step() > 0);
}

// Of variables that the workers keep, shards have the values of the start.
bool IsReplicated(const RecoverySpec& spec) {
  return std::ranges::any_of(spec.variables.placement().variables(), &VariableSpec::replicated);
}

bool CanGoOn(const RecoverySpec& spec, const std::vector<SetViewReply>& seen, bool moves) {
  if (std::ranges::none_of(seen, HasProgress)) return false;
  return CheckTogether(spec, seen).ok() || (moves && AreStepsApart(spec, seen));
}

// The shard is lost, and one of its two ps has variables of its epoch: the chief before has made
// one of them, or one was started again. Or both have some: one is deposed, and the other one
// awaits its state. What is made in this epoch would not be the same at both.
bool IsHalfMade(const SetViewReply& view) { return !view.has_variables() && view.awaits_state(); }

// Nothing is lost with its variables.
bool IsAtStart(const SetViewReply& view) {
  return view.shard_step() == view.start_step() && view.global_step() <= view.start_step();
}

StartPoint ChooseToResume(const RecoverySpec& spec, const std::vector<SetViewReply>& seen,
                          bool moves) {
  if (IsReplicated(spec)) return spec.is_done() ? StartPoint::kDone : StartPoint::kAsSpecified;
  if (CanGoOn(spec, seen, moves)) return StartPoint::kTakeOver;
  return spec.is_done() ? StartPoint::kDone : StartPoint::kAsSpecified;
}

}  // namespace

bool AreStepsApart(const RecoverySpec& spec, const std::vector<SetViewReply>& seen) {
  const bool may_go_on = spec.mode == StartMode::kSucceed || spec.mode == StartMode::kResume;
  const bool are_of_one_epoch = std::ranges::all_of(seen, [&](const SetViewReply& view) {
    return view.has_variables() && view.epoch() == seen.front().epoch();
  });
  return may_go_on && are_of_one_epoch && !CheckTogether(spec, seen).ok();
}

absl::StatusOr<StartPoint> ChooseStart(const RecoverySpec& spec,
                                       const std::vector<SetViewReply>& seen, bool moves) {
  if (spec.mode == StartMode::kRestore) return StartPoint::kAsSpecified;
  if (spec.mode == StartMode::kSucceed) {
    // Also where the workers keep the variables: they live.
    return CanGoOn(spec, seen, moves) ? StartPoint::kTakeOver : StartPoint::kPlanAfresh;
  }
  if (spec.mode == StartMode::kResume) return ChooseToResume(spec, seen, moves);
  const bool have_trained = std::ranges::any_of(
      seen, [&spec](const SetViewReply& view) { return HasTrained(spec, view); });
  if (have_trained) return StartPoint::kTakeOver;
  LOCKSTEP_RETURN_IF_ERROR(CheckBeginning(spec.mode, spec.earlier));
  return StartPoint::kAsSpecified;
}

RecoverySpec RecoverySpecFor(StartPoint start, RecoverySpec spec,
                             const std::vector<SetViewReply>& seen) {
  if (start == StartPoint::kTakeOver) {
    spec.variables.clear_restore_from();
    spec.variables.set_start_step(0);
    spec.epoch = Epoch(1);
    return spec;
  }
  const bool resumes = spec.mode == StartMode::kResume;
  const bool all_have = std::ranges::all_of(seen, &SetViewReply::has_variables);
  for (const SetViewReply& view : seen) {
    const bool is_others = resumes && view.has_variables() && (!all_have || HasTrained(spec, view));
    const bool is_made_anew = IsHalfMade(view) && (resumes || IsAtStart(view));
    if (is_others || is_made_anew) spec.epoch = std::max(spec.epoch, Epoch(view.epoch() + 1));
  }
  return spec;
}

}  // namespace lockstep::chief
