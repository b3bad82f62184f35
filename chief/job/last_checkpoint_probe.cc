#include "chief/job/last_checkpoint_probe.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chief/plan/plan.h"
#include "common/base/status_macros.h"

namespace lockstep::chief {
namespace {

absl::Status CheckHasLast(const std::string& root, GlobalStep last) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, FindLastCheckpoint(root, last));
  if (!found.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(root, ": no checkpoint of step ", last.value()));
}

}  // namespace

LastCheckpointProbe::LastCheckpointProbe(const JobInputs& inputs, absl::Duration now)
    : root_(inputs.plan.job.checkpoint().folder()),
      last_(inputs.plan.max_steps),
      pause_(inputs.options.lease),
      next_(now + pause_),
      disk_(inputs.executor, inputs.options.waits_for_disk) {}

void LastCheckpointProbe::Tick(absl::Duration now, std::function<void()> on_found) {
  if (is_busy_ || root_.empty() || now < next_) return;
  next_ = now + pause_;
  is_busy_ = true;
  disk_.Run([root = root_, last = last_] { return CheckHasLast(root, last); },
            [this, on_found = std::move(on_found)](const absl::Status& found) {
              is_busy_ = false;
              if (found.ok()) on_found();
            });
}

}  // namespace lockstep::chief
