// The certificates of a whole cluster, from an authority of its own.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/config/cluster_spec.h"

namespace lockstep::deploy {

struct TaskCertificate {
  std::string task;  // "chief", "ps-0", "worker-1", "reader"
  std::string path;
};

// Of the authority.
std::string AuthorityPath(const std::string& folder);
// Of the file that MakeCertificates writes for a task.
std::string CertificatePath(const std::string& folder, absl::string_view task);

// Makes `folder`, its authority where there is none yet, and a certificate in the place of any that
// was there for each task of the cluster and for a reader. INVALID_ARGUMENT: `job` is not empty,
// and no name of a job. ALREADY_EXISTS: another process makes certificates in `folder`. Errors of
// FileLock and CertificateAuthority.
absl::StatusOr<std::vector<TaskCertificate>> MakeCertificates(const std::string& folder,
                                                              const ClusterSpec& cluster,
                                                              const std::string& job,
                                                              absl::Duration validity);

}  // namespace lockstep::deploy
