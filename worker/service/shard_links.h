// A worker's way to each shard: what tensors travel with, and beside it the pings that tell whether
// the ps can be reached. Both follow a shard that is served at another place.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/timer.h"
#include "common/client/failover_transport.h"
#include "common/contact/ps_contacts.h"
#include "common/rpc/credentials.h"
#include "common/rpc/event_queue.h"
#include "common/transport/tensor_transport.h"
#include "proto/chief.pb.h"
#include "worker/service/shared_memory.h"

namespace lockstep::worker {

struct ShardLinksOptions {
  WorkerIdentity identity;
  std::vector<std::string> ps_addresses;
  // Where the ps of a shard is as of now; null: as in ps_addresses.
  std::function<std::string(size_t shard)> home_of = nullptr;
  rpc::EventQueue* queue = nullptr;                               // of calls; outlives the links
  std::shared_ptr<const rpc::Credentials> credentials = nullptr;  // of calls
};

// Thread-safe.
class ShardLinks {
 public:
  // `memory` and `timer` outlive the links.
  ShardLinks(ShardLinksOptions options, const RegisterTaskReply& registration,
             const SharedMemory* memory, Timer* timer);

  // By shard. Theirs as long as the links.
  const std::vector<TensorTransport*>& transports() const { return transports_; }
  // What a chief tells of a job with sync.ps_replicas, by shard. Not in a callback of a transport.
  void SetPlaces(const google::protobuf::RepeatedPtrField<ShardPlace>& places);
  // Cancels all transports, for good, and ends the pings. Not in a callback.
  void Cancel();

 private:
  std::string NameOf(size_t shard, const std::string& address) const;
  std::unique_ptr<TensorTransport> Connect(size_t shard, const std::string& address) const;

  const ShardLinksOptions options_;
  const bool checksums_;
  const SharedMemory* const memory_;
  PsContacts contacts_;
  std::vector<std::unique_ptr<TensorTransport>> owned_;
  std::vector<FailoverTransport*> movable_;  // owned_ of a job with sync.ps_replicas; or none
  std::vector<TensorTransport*> transports_;
};

}  // namespace lockstep::worker
