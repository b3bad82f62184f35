// To a shard that has a copy: to its ps, or to the ps that keeps the copy, whichever serves the
// workers. Learns from failed calls which one that is, or from the chief.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/transport/tensor_transport.h"

namespace lockstep {

// A call that fails because its peer is away, has lost the shard or does not serve it ends with
// UNAVAILABLE, and the next one goes to the other peer. So does a call that is answered by a peer
// that has been left meanwhile: what it was told is not known to the other.
class FailoverTransport final : public TensorTransport {
 public:
  enum Peer { kPrimary, kCopy };
  // Makes the transport to one of them; called once for each, for the copy when it is needed.
  using Connect = std::function<std::unique_ptr<TensorTransport>(Peer)>;

  explicit FailoverTransport(Connect connect);

  // The chief says that the copy serves the shard for good: calls in flight to the primary end.
  void StayAtCopy();

  void Open(const WorkerIdentity& worker, Callback<TransportInfo> done) override;
  std::string peer() const override { return current()->peer(); }
  bool MayRound() const override { return current()->MayRound(); }
  bool SendsByReference(std::span<const std::byte> values) const override {
    return current()->SendsByReference(values);
  }
  bool ReceivesByReference() const override { return current()->ReceivesByReference(); }
  uint64_t generation() const override { return generation_.load(); }
  void Cancel() override;
  void Start(const CallOptions& options, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override;

 private:
  TensorTransport* current() const;
  // From the peer of this generation to the other one, unless that has been done.
  void Leave(uint64_t generation);
  // What an Open asked of the peer before, of the one that calls go to now.
  void OpenAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  void MoveTo(Peer peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Connect connect_;
  std::atomic<uint64_t> generation_ = 0;  // counts the moves
  mutable absl::Mutex mutex_;
  std::optional<WorkerIdentity> worker_ ABSL_GUARDED_BY(mutex_);  // of the last Open
  Peer current_ ABSL_GUARDED_BY(mutex_) = kPrimary;
  bool stays_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<TensorTransport> primary_;                       // never changes
  std::unique_ptr<TensorTransport> copy_ ABSL_GUARDED_BY(mutex_);  // null until it is needed
};

}  // namespace lockstep
