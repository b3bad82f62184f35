#include "chief/checkpoint/start_mode.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

absl::Status CheckBeginning(StartMode mode, const std::string& earlier) {
  if (mode != StartMode::kBegin || earlier.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(earlier,
                   " is of an earlier run, and no ps is in training. Remedy: --resume to go on "
                   "from the newest checkpoint, --fresh to begin at step 0 and set the earlier "
                   "ones aside, or another checkpoint.folder in the job"));
}

}  // namespace lockstep::chief
