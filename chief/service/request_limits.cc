#include "chief/service/request_limits.h"

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/config/known_cluster_specs.h"

namespace lockstep::chief {
namespace {

absl::Status AtMost(absl::string_view field, size_t limit, size_t got, absl::string_view unit) {
  if (got <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected at most ", limit, " ", unit,
                                                 ", got ", got,
                                                 ". Remedy: call with a worker of this version"));
}

}  // namespace

absl::Status CheckLimits(const RegisterTaskRequest& request) {
  LOCKSTEP_RETURN_IF_ERROR(AtMost("RegisterTask.earlier_clusters", KnownClusterSpecs::kMost,
                                  request.earlier_clusters_size(), "cluster specs"));
  LOCKSTEP_RETURN_IF_ERROR(
      AtMost("RegisterTask.host", limits::kMaxHostBytes, request.host().size(), "bytes"));
  return AtMost("RegisterTask.version", limits::kMaxVersionBytes, request.version().size(),
                "bytes");
}

absl::Status CheckLimits(const HeartbeatRequest& request) {
  return AtMost("Heartbeat.results", limits::kMaxEvaluationResults, request.results_size(),
                "results");
}

}  // namespace lockstep::chief
