#include "deploy/cli/check_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/plan/plan.h"
#include "common/base/annotate.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/config/job.h"
#include "common/fs/fs_error.h"

namespace lockstep::deploy {
namespace {

absl::Status CheckLocal(const std::string& path, const JobDef& job) {
  const LocalCluster& local = job.local();
  if (local.ps() >= 1 && local.workers() >= 1 && local.ps() + local.workers() <= kMaxLocalTasks) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": local: expected at least 1 ps and 1 worker, at most ", kMaxLocalTasks,
                   " in all, got ps: ", local.ps(), " workers: ", local.workers(),
                   ". Remedy: write local { ps: 1 workers: 2 }"));
}

// Without it a user learns of the mistake with the first save, which may be that of the last step.
// A chief does not check: it may be started again while training goes on without the folder.
absl::Status CheckMayWrite(const std::string& path, const std::string& folder) {
  if (folder.empty()) return absl::OkStatus();
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return absl::OkStatus();
  return AddRemedy(
      Annotate(WriteError(folder, "write", errno), absl::StrCat(path, ": checkpoint.folder")),
      "name a folder in which this user may write");
}

// Processes of one machine share memory: no tensor is rounded.
std::string WarningOf(const std::string& path, const TransportDef& transport) {
  const DataType type = transport.wire_type();
  const bool rounds = type == BFLOAT16 || type == FLOAT16;
  if (!rounds || transport.shared_memory() == TransportDef::OFF) return "";
  return absl::StrCat("warning: ", path, ": transport.wire_type: ", DataType_Name(type),
                      " has no effect here: on one machine all tensors go through shared memory. ",
                      "Remedy: leave it out, or set shared_memory: OFF to try it");
}

// The chief ends such a run at once, with 0: a launcher may repeat its command.
std::string DoneWarning(const std::string& path, const chief::JobPlan& plan) {
  return absl::StrCat("warning: ", path, ": nothing is left to train: ", plan.restore_from,
                      " is of step ", plan.start.value(), ", the job ends at step ",
                      plan.max_steps.value(), ". Remedy: raise ",
                      plan.job.max_steps() > 0 ? "max_steps" : "data_epochs", " to train longer");
}

// The ports are found when the processes start.
ClusterSpec SpecOf(const LocalCluster& local) {
  return {.ps = std::vector<std::string>(local.ps(), "127.0.0.1:0"),
          .workers = std::vector<std::string>(local.workers(), "127.0.0.1:0"),
          .chief = "127.0.0.1:0"};
}

}  // namespace

absl::StatusOr<std::string> CheckRun(const std::string& job_path, const JobDef& job,
                                     const chief::StartChoice& start) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLocal(job_path, job));
  LOCKSTEP_ASSIGN_OR_RETURN(const chief::JobPlan plan,
                            chief::MakePlan(job_path, SpecOf(job.local()), start));
  LOCKSTEP_RETURN_IF_ERROR(chief::CheckBeginning(start.mode, plan.earlier));
  if (start.mode == chief::StartMode::kResume && plan.is_done()) return DoneWarning(job_path, plan);
  LOCKSTEP_RETURN_IF_ERROR(CheckMayWrite(job_path, plan.job.checkpoint().folder()));
  return WarningOf(job_path, job.transport());
}

}  // namespace lockstep::deploy
