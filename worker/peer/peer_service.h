// The peer service of a worker process: admits calls of members of its group and hands them to the
// collective of that view. It lives as long as the process serves; groups come and go.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/service.h"
#include "common/transport/tensor_call.h"
#include "proto/peer.grpc.pb.h"
#include "worker/collective/member_state.h"
#include "worker/peer/group.h"

namespace lockstep::worker {

using SendCall = TensorCall<SendRequest, SendReply>;

// The collective of one view. Thread-safe; outlives its last call, because it is shared.
class PeerReceiver {
 public:
  virtual ~PeerReceiver() = default;
  virtual const Group& group() const = 0;
  // The member at this position says what it reduces. INVALID_ARGUMENT: something else.
  virtual absl::Status Compare(int position, const CompareRequest& theirs) = 0;
  // Where the member at this position may hand over its memory, or why not.
  virtual AttachMemoryReply OfferAttachment(int position, const std::string& host) = 0;
  // A message of the member at this position. Answered once, at any time. On a thread that polls.
  virtual void Receive(int position, std::shared_ptr<SendCall> call) = 0;
  // OK while the collective has not ended with an error.
  virtual absl::Status failure() const = 0;
  // The group has a newer view: this one ends. Never under a lock.
  virtual void OnNewerView(const GroupViewId& newest) = 0;
};

// How the end of a collective is told to members that still send to it.
absl::Status EndOfCollective(const absl::Status& failure);

// Thread-safe.
class PeerService final : public rpc::Service {
 public:
  PeerService() = default;

  // Calls in the view of `receiver` go to it from now on. ABORTED: there is a newer view.
  absl::Status Attach(std::shared_ptr<PeerReceiver> receiver);
  // Calls do not go to it any more. Those that it has are its own to answer.
  void Detach(const PeerReceiver* receiver);
  // What members read that come later; null: nothing. It must outlive the service, or be taken
  // away.
  void SetOwnState(OwnState* state);
  // Whether messages of members must have a checksum: transport.checksums.
  void ExpectChecksums(bool expects) { expects_checksums_.store(expects); }
  // The newest view of the job that the chief has told. A collective of an older one ends with
  // ABORTED. Views of another job begin anew.
  void AnnounceView(uint64_t job, const GroupViewId& newest);

  // What the calls do, whatever carries them. Of Send, the answer may come much later.
  void OnSend(const std::shared_ptr<SendCall>& call);
  absl::StatusOr<CompareReply> OnCompare(const CompareRequest& request);
  absl::StatusOr<ProbeReply> OnProbe(const ProbeRequest& request);
  absl::StatusOr<ReadStateReply> OnReadState(const ReadStateRequest& request);
  absl::StatusOr<AttachMemoryReply> OnAttachMemory(const AttachPeerMemoryRequest& request);

  rpc::RawMethods* methods() override { return &methods_; }
  void Serve(const rpc::ServingQueue& queue) override;

 private:
  struct Admitted {
    std::shared_ptr<PeerReceiver> receiver;
    int position = 0;
  };

  // FAILED_PRECONDITION: no collective of this view is here yet, repeat. ABORTED: the view is over,
  // or the sender is no member.
  absl::StatusOr<Admitted> Admit(const PeerIdentity& sender) const;
  // ABORTED: the job has had a newer one.
  absl::Status CheckNotOver(uint64_t job, const GroupViewId& view) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rpc::RawMethods methods_{Peer::service_full_name()};
  std::atomic<bool> expects_checksums_ = false;
  mutable absl::Mutex mutex_;
  uint64_t job_ ABSL_GUARDED_BY(mutex_) = 0;  // of `newest_`
  GroupViewId newest_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<PeerReceiver> receiver_ ABSL_GUARDED_BY(mutex_);
  // Held while the state is read.
  absl::Mutex state_mutex_;
  OwnState* state_ ABSL_GUARDED_BY(state_mutex_) = nullptr;
};

}  // namespace lockstep::worker
