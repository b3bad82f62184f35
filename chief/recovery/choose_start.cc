#include "chief/recovery/choose_start.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace lockstep::chief {
namespace {

bool HasProgress(const SetViewReply& view) {
  return view.has_variables() && (view.shard_step() > 0 || view.global_step() > 0);
}

StartPoint ChooseToResume(const Claim& claim, const std::vector<SetViewReply>& seen) {
  const bool all_have = std::ranges::all_of(seen, &SetViewReply::has_variables);
  const bool have_progress = std::ranges::any_of(seen, HasProgress);
  if (all_have && have_progress) return StartPoint::kTakeOver;
  if (claim.is_done()) return StartPoint::kDone;
  // Shards at the claim's own start were created by a chief that died before the others were.
  const bool is_ahead = std::ranges::any_of(seen, [&claim](const SetViewReply& view) {
    return HasProgress(view) && HasTrained(claim, view);
  });
  return is_ahead ? StartPoint::kTakeOver : StartPoint::kAsClaimed;
}

}  // namespace

absl::StatusOr<StartPoint> ChooseStart(const Claim& claim, const std::vector<SetViewReply>& seen) {
  if (claim.mode == StartMode::kRestore) return StartPoint::kAsClaimed;
  if (claim.mode == StartMode::kResume) return ChooseToResume(claim, seen);
  const bool have_trained = std::ranges::any_of(
      seen, [&claim](const SetViewReply& view) { return HasTrained(claim, view); });
  if (have_trained) return StartPoint::kTakeOver;
  LOCKSTEP_RETURN_IF_ERROR(CheckBeginning(claim.mode, claim.earlier));
  return StartPoint::kAsClaimed;
}

Claim ClaimFor(StartPoint start, Claim claim, const std::vector<SetViewReply>& seen) {
  if (start == StartPoint::kTakeOver) {
    claim.variables.clear_restore_from();
    claim.variables.set_start_step(0);
    claim.epoch = Epoch(1);
    return claim;
  }
  if (claim.mode != StartMode::kResume) return claim;
  for (const SetViewReply& view : seen) {
    if (!view.has_variables() || !HasTrained(claim, view)) continue;
    claim.epoch = std::max(claim.epoch, Epoch(view.epoch() + 1));
  }
  return claim;
}

}  // namespace lockstep::chief
