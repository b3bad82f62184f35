// To a shard that may be at two places: to the ps that serves the workers. Learns from failed calls
// which of the two that is, and from the chief where they are.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/transport/tensor_transport.h"

namespace lockstep {

// A call that fails because its peer is away, has lost the shard or does not serve it ends with
// UNAVAILABLE, and the next one goes to the other peer, if there is one. So does a call that is
// answered by a peer that has been left meanwhile: what it was told is not known to the other.
// Where there is no other peer, the chief may know of one soon, or tells that the job goes back.
class FailoverTransport final : public TensorTransport {
 public:
  // Makes the transport to the ps at an address.
  using Connect = std::function<std::unique_ptr<TensorTransport>(const std::string& address)>;

  // `address` of the ps that serves, `other_address` of the one that may serve when that one is
  // lost; empty: there is none.
  FailoverTransport(Connect connect, std::string address, std::string other_address);

  // The chief says where the shard is now. If that is not what it said before, calls go to
  // `address` from now on, and those in flight to other peers end. Not in a callback of a call.
  void SetPlaces(const std::string& address, const std::string& other_address);

  void Open(const WorkerIdentity& worker, Callback<TransportInfo> done) override;
  std::string peer() const override { return current()->transport->peer(); }
  // False once any peer has read by reference: a worker's gradients keep one type.
  bool MayRound() const override;
  bool SendsByReference(std::span<const std::byte> values) const override {
    return current()->transport->SendsByReference(values);
  }
  bool ReceivesByReference() const override { return current()->transport->ReceivesByReference(); }
  uint64_t generation() const override { return generation_.load(); }
  void NotifyOfMoves(std::weak_ptr<const std::function<void()>> on_move) override;
  void Cancel() override;
  void Start(const CallOptions& options, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override;

 private:
  struct Peer {
    const std::string address;
    std::atomic<int> in_flight = 0;  // calls, those of Open too
    // The last Open failed. The next call opens it again.
    std::atomic<bool> needs_open = false;
    const std::unique_ptr<TensorTransport> transport;  // last: its callbacks use the rest
  };
  struct Places {
    std::string address;
    std::string other;
    bool operator==(const Places&) const = default;
  };

  std::shared_ptr<Peer> current() const;
  // What the caller is told of a call that was made in this generation, and ended so.
  absl::StatusOr<ReceivedTensors> Judge(uint64_t generation, const TensorTransport& from,
                                        absl::StatusOr<ReceivedTensors> received);
  // From the peer of this generation to the other one, unless that has been done.
  void Leave(uint64_t generation);
  // What an Open asked of the peer before, of the one that calls go to now.
  void OpenAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Those who want to know that calls go to another peer.
  void TellMoved() ABSL_LOCKS_EXCLUDED(mutex_);
  void MoveTo(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Connect connect_;
  std::atomic<uint64_t> generation_ = 0;  // counts the moves
  mutable absl::Mutex mutex_;
  std::optional<WorkerIdentity> worker_ ABSL_GUARDED_BY(mutex_);  // of the last Open
  Places places_ ABSL_GUARDED_BY(mutex_);                         // as the chief said last
  std::shared_ptr<Peer> current_ ABSL_GUARDED_BY(mutex_);
  // Whether every peer that was current before might be sent rounded tensors.
  bool may_round_ ABSL_GUARDED_BY(mutex_) = true;
  std::map<std::string, std::shared_ptr<Peer>> peers_ ABSL_GUARDED_BY(mutex_);  // by address
  // Cancelled. Kept until their calls have ended.
  std::vector<std::shared_ptr<Peer>> left_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<const std::function<void()>>> on_moves_ ABSL_GUARDED_BY(mutex_);
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep
