// DaemonCredentials holds the credentials that ps, worker and chief show and ask of their callers.
// They come from the flags that all share: --token_file, --tls_cert, --tls_key and --tls_ca.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/cluster_spec.h"
#include "common/config/task.h"
#include "common/rpc/credentials.h"
#include "common/rpc/peer_roles.h"

namespace lockstep {

// Thread-safe. Copies share their state. Without the flags everybody is served, and every cluster
// spec is admitted.
class DaemonCredentials {
 public:
  DaemonCredentials() = default;

  // Admits the cluster of `task`. Without the flags the log warns that everybody who reaches
  // `listening` is served. Errors of Admit, MakeTokenCredentials and MakeTlsCredentials.
  static absl::StatusOr<DaemonCredentials> Load(const TaskConfig& task,
                                                const std::string& listening);

  // Null without the flags.
  const std::shared_ptr<const rpc::Credentials>& get() const { return credentials_; }

  // This process calls the tasks of `cluster` from now on: with TLS each must prove its role at its
  // address. INVALID_ARGUMENT, and nothing has changed: a token without TLS, and an address that is
  // not loopback.
  absl::Status Admit(const ClusterSpec& cluster) const;

 private:
  std::shared_ptr<const rpc::Credentials> credentials_;
  std::shared_ptr<rpc::PeerRoles> peers_;  // null without TLS
};

}  // namespace lockstep
