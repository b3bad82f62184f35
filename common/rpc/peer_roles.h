// PeerRoles maps an address to the task that serves there, as its certificate must prove. The map
// changes with the cluster spec while the process runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/security/caller.h"

namespace lockstep::rpc {

// Thread-safe.
class PeerRoles {
 public:
  using Map = std::map<std::string, security::Caller>;  // by "host:port"

  explicit PeerRoles(Map roles = {}) : roles_(std::move(roles)) {}

  // New connections follow `roles`; existing ones keep their role.
  void Replace(Map roles);
  // nullopt: no role is known for this address.
  std::optional<security::Caller> At(const std::string& address) const;

 private:
  mutable absl::Mutex mutex_;
  Map roles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::rpc
