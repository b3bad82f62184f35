#include "deploy/cli/check_run.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/checked_job.h"

namespace lockstep::deploy {
namespace {

absl::Status CheckLocal(const std::string& path, const JobDef& job) {
  constexpr int kMost = 1000;
  const LocalCluster& local = job.local();
  if (local.ps() >= 1 && local.workers() >= 1 && local.ps() + local.workers() <= kMost) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": local: expected at least 1 ps and 1 worker, at most ", kMost, " in all, got ps: ",
      local.ps(), " workers: ", local.workers(), ". Remedy: write local { ps: 1 workers: 2 }"));
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

}  // namespace

absl::StatusOr<std::string> CheckRun(const std::string& job_path, const LoadedJob& loaded) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLocal(job_path, loaded.job));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckedJob::Create(job_path, loaded, loaded.job.local().workers()).status());
  LOCKSTEP_RETURN_IF_ERROR(MakeCheckpointFolder(job_path, loaded.job));
  return WarningOf(job_path, loaded.job.transport());
}

}  // namespace lockstep::deploy
