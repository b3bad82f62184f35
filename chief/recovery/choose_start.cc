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

StartPoint ChooseToResume(const RecoverySpec& spec, const std::vector<SetViewReply>& seen) {
  if (IsReplicated(spec)) return spec.is_done() ? StartPoint::kDone : StartPoint::kAsSpecified;
  const bool have_progress = std::ranges::any_of(seen, HasProgress);
  if (have_progress && CheckTogether(spec, seen).ok()) return StartPoint::kTakeOver;
  return spec.is_done() ? StartPoint::kDone : StartPoint::kAsSpecified;
}

}  // namespace

absl::StatusOr<StartPoint> ChooseStart(const RecoverySpec& spec,
                                       const std::vector<SetViewReply>& seen) {
  if (spec.mode == StartMode::kRestore) return StartPoint::kAsSpecified;
  if (spec.mode == StartMode::kSucceed) {
    // Also where the workers keep the variables: they live.
    const bool can_go_on = std::ranges::any_of(seen, HasProgress) && CheckTogether(spec, seen).ok();
    return can_go_on ? StartPoint::kTakeOver : StartPoint::kPlanAfresh;
  }
  if (spec.mode == StartMode::kResume) return ChooseToResume(spec, seen);
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
  if (spec.mode != StartMode::kResume) return spec;
  const bool all_have = std::ranges::all_of(seen, &SetViewReply::has_variables);
  for (const SetViewReply& view : seen) {
    if (!view.has_variables() || (all_have && !HasTrained(spec, view))) continue;
    spec.epoch = std::max(spec.epoch, Epoch(view.epoch() + 1));
  }
  return spec;
}

}  // namespace lockstep::chief
