#include "chief/service/newcomer.h"

#include "absl/strings/str_cat.h"
#include "chief/service/request_limits.h"
#include "common/base/limits.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/config/cluster_spec.h"

namespace lockstep::chief {

absl::Status CheckNewcomer(const RegisterTaskRequest& request, const std::string& cluster,
                           bool is_elastic) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLimits(request));
  const std::string who = absl::StrCat("worker ", request.worker());
  const std::string difference =
      is_elastic
          ? DescribeElasticDifference(cluster, request.cluster(), "the chief's", "the worker's")
          : DescribeDifference(cluster, request.cluster(), "the chief's", "the worker's");
  if (!difference.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cluster specs of ", who, " and of the chief differ: ", difference,
                     ". Remedy: give every task the same cluster spec"));
  }
  if (is_elastic && !WorkerAddressIn(request.cluster(), request.worker()).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no ", who, " in its cluster spec. Remedy: correct --task_index"));
  }
  if (request.version() != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        who, " is of version ", Printable(request.version(), limits::kMaxVersionBytes),
        ", the chief of version ", kVersion, ". Remedy: install the same version everywhere"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
