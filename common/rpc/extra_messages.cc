#include "common/rpc/extra_messages.h"

#include "common/rpc/peer_name.h"

namespace lockstep::rpc {

void ExtraMessages::Add(absl::string_view peer_uri) {
  const std::string peer = PeerName(peer_uri);
  if (peer.empty()) return;
  absl::MutexLock lock(&mutex_);
  ++counts_[peer];
}

ExtraMessages::Counts ExtraMessages::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

void ExtraMessages::Forget(const Counts& ended) {
  absl::MutexLock lock(&mutex_);
  for (const auto& [peer, count] : ended) {
    const auto found = counts_.find(peer);
    if (found == counts_.end()) continue;
    found->second -= count;
    if (found->second <= 0) counts_.erase(found);
  }
}

}  // namespace lockstep::rpc
