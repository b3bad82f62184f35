#include "common/rpc/peer_roles.h"

namespace lockstep::rpc {

void PeerRoles::Replace(Map roles) {
  absl::MutexLock lock(&mutex_);
  roles_ = std::move(roles);
}

std::optional<security::Caller> PeerRoles::At(const std::string& address) const {
  absl::MutexLock lock(&mutex_);
  const auto found = roles_.find(address);
  if (found == roles_.end()) return std::nullopt;
  return found->second;
}

}  // namespace lockstep::rpc
