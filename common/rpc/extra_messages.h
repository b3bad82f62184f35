// Messages beyond the first one of their call, by connection. gRPC counts the messages of all calls
// of a connection together, so those of one long stream look like those of many calls.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace lockstep::rpc {

// Thread-safe.
class ExtraMessages {
 public:
  using Counts = absl::flat_hash_map<std::string, int64_t>;  // by PeerName

  // One more, of the connection with this peer as gRPC writes it (ServerContext::peer()).
  void Add(absl::string_view peer_uri);
  Counts counts() const;
  // Takes these off: their connections have ended. What the next one from the same port has added
  // since stays.
  void Forget(const Counts& ended);

 private:
  mutable absl::Mutex mutex_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::rpc
