#include "ps/service/job_finisher.h"

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/lost_variables.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace lockstep::ps {
namespace {

constexpr int kLargestExitCode = 255;

absl::StatusOr<JobEnd> ToJobEnd(const FinishRequest& request) {
  if (request.exit_code() < 0 || request.exit_code() > kLargestExitCode) {
    return absl::InvalidArgumentError(
        absl::StrCat("exit_code: expected 0 to ", kLargestExitCode, ", got ", request.exit_code()));
  }
  return JobEnd{static_cast<ExitCode>(request.exit_code()),
                Printable(request.reason(), limits::kMaxErrorBytes)};
}

}  // namespace

absl::StatusOr<JobEnd> JobFinisher::Finish(const FinishRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(JobEnd end, ToJobEnd(request));
  absl::Status status = shard_->Finish(request.command());
  // A ps that was started again when all was done, or somebody ended the job, has nothing to wait
  // for. After a failure the next chief may come.
  const bool is_over = end.code == ExitCode::kDone || end.code == ExitCode::kInterrupted;
  if (is_over && IsNoVariables(status)) status = absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(status);
  is_finished_.store(true);
  watch_->EndJob(static_cast<int>(end.code), end.reason);
  return end;
}

absl::Status JobFinisher::CheckUnfinished() const {
  if (is_finished_.load()) return absl::UnavailableError("its job is over, it ends");
  return absl::OkStatus();
}

absl::Status JobFinisher::CheckServing() const {
  LOCKSTEP_RETURN_IF_ERROR(CheckUnfinished());
  if (is_leaving_.load()) return absl::UnavailableError("it was told to end");
  return absl::OkStatus();
}

}  // namespace lockstep::ps
