#include "chief/service/newcomer.h"

#include "absl/strings/str_cat.h"
#include "chief/service/request_limits.h"
#include "common/base/limits.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/config/cluster_spec.h"

namespace lockstep::chief {

absl::Status CheckNewcomer(const RegisterTaskRequest& request, const KnownClusterSpecs& clusters,
                           bool is_elastic) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLimits(request));
  const std::string who = absl::StrCat("worker ", request.worker());
  const std::string difference =
      clusters.DifferenceFrom(TextsOf(request.cluster(), request.earlier_clusters()), is_elastic,
                              "the chief's", "the worker's");
  if (!difference.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cluster specs of ", who, " and of the chief differ: ", difference,
                     ". Remedy: give every task the same cluster spec; one that runs reads its "
                     "file again on SIGHUP"));
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

// A new message: one that is cleared keeps its memory.
RegisterTaskRequest ParkedPartOf(const RegisterTaskRequest& request) {
  RegisterTaskRequest parked;
  parked.set_worker(request.worker());
  parked.set_incarnation(request.incarnation());
  parked.set_version(request.version());
  parked.set_host(request.host());
  parked.set_pid(request.pid());
  if (request.has_last_reply()) {
    parked.mutable_last_reply()->set_run(request.last_reply().run());
    parked.mutable_last_reply()->set_number(request.last_reply().number());
  }
  const auto address = WorkerAddressIn(request.cluster(), request.worker());
  if (address.has_value()) {
    parked.set_cluster(absl::StrCat("worker ", request.worker(), " ", *address, "\n"));
  }
  return parked;
}

void TakeAddress(const RegisterTaskRequest& request, bool is_elastic, Membership* membership) {
  const auto address = WorkerAddressIn(request.cluster(), request.worker());
  const WorkerIndex worker(request.worker());
  const auto& members = membership->members();
  const bool is_member = worker.value() < members.size();
  const bool may_take =
      is_member ? members[worker.value()].state != MemberState::kLive : is_elastic;
  if (address.has_value() && may_take) membership->SetAddress(worker, *address);
}

}  // namespace lockstep::chief
