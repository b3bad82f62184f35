// The collectives of one view of a group at one member: which vectors run, what is under way to the
// other members, whether these live, and how it ended. Shared by the reducer that owns it and by
// calls under way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "worker/collective/group_reducer.h"
#include "worker/collective/reduction_layout.h"
#include "worker/peer/member_connection.h"
#include "worker/peer/member_memory.h"
#include "worker/peer/member_monitor.h"
#include "worker/peer/peer_service.h"
#include "worker/peer/repeat_queue.h"
#include "worker/peer/scope_order.h"
#include "worker/peer/vector_reduction.h"

namespace lockstep::worker {

// Thread-safe. After Close nothing uses connections, timer or clock.
class PeerCollective final : public PeerReceiver,
                             public VectorOwner,
                             public std::enable_shared_from_this<PeerCollective> {
 public:
  struct Options {
    Group group;
    GroupReduction reduction;  // its schedules cut into messages
    // By position; null for this worker.
    std::vector<MemberConnection*> connections;
    // In which the towers' memory lies, for members to read. Null: messages carry elements.
    std::shared_ptr<const shm::Segment> memory;
    size_t message_bytes = 0;  // as the schedules are cut
    Timer* timer = nullptr;
    const Clock* clock = nullptr;
    absl::Duration patience;
  };

  // Of each local tower the memory, which is laid out as `layout` says and there for as long as
  // this.
  PeerCollective(Options options, ReductionLayout layout, absl::Span<std::byte* const> towers);

  // As GroupReducer.
  void Reduce(int64_t step, absl::Span<const std::vector<TensorView>> gradients,
              StatusCallback done);
  GroupTraffic traffic() const;
  // Ends what runs with CANCELLED, unless it has ended, and waits for its callback.
  void Close();

  const Group& group() const override { return options_.group; }
  absl::Status Compare(int position, const CompareRequest& theirs) override;
  AttachMemoryReply OfferAttachment(int position, const std::string& host) override {
    return member_memory_.Offer(position, host);
  }
  void Receive(int position, std::shared_ptr<SendCall> call) override;
  absl::Status failure() const override;
  void OnNewerView(const GroupViewId& newest) override;

  void Enter() override;
  void Leave() override;
  void Send(int vector, int64_t reduction, int64_t step,
            const LocalParticipants::Send& send) override;
  void OnVectorDone() override;
  // The first one counts: it ends the reduction that runs and all later ones.
  void Fail(absl::Status failure) override;
  const std::string& NameOf(int position) const override { return names_[position]; }

 private:
  // A message under way. Counts as one in Enter and Leave.
  struct Outgoing {
    int vector = 0;
    int64_t reduction = 0;
    int64_t step = 0;
    LocalParticipants::Send send;
  };

  void BeginVectors();
  // Where each tower's elements of vector `v` are read: `first` gets the gradients' own places, or
  // is empty after they were copied into the towers' memory.
  void PlaceGradients(int v, std::vector<const void*>* first) const;
  int PositionOf(int rank) const { return rank / options_.reduction.topology.towers; }
  // Reads the elements of a message: its own, or those in the sender's memory.
  absl::Status TakeElements(SendCall* call, VectorReduction::Incoming* incoming) const;
  void Transmit(const Outgoing& outgoing);
  void OnAnswered(const Outgoing& outgoing, const absl::Status& status);
  // The member may take it later.
  void RepeatLater(int position, const Outgoing& outgoing);
  void Repeat(int position);
  void OnPartDone();
  // The reduction has its outcome.
  void End(const absl::Status& outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const ReductionLayout layout_;
  const std::vector<std::byte*> towers_;
  std::vector<std::string> names_;  // by position
  CompareRequest description_;      // of the reduction
  MemberMemory member_memory_;
  MemberMonitor monitor_;
  std::vector<std::unique_ptr<VectorReduction>> vectors_;
  ScopeOrder order_;  // of vectors_
  // Of the reduction that runs, as given to Reduce. Written while no vector has begun.
  int64_t number_ = 0;
  int64_t step_ = 0;
  absl::Span<const std::vector<TensorView>> gradients_;

  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Threads at work on vectors, and messages under way.
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the reduction that runs.
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_outcome_ ABSL_GUARDED_BY(mutex_) = false;  // told when nothing is inside any more
  absl::Status outcome_ ABSL_GUARDED_BY(mutex_);
  StatusCallback done_ ABSL_GUARDED_BY(mutex_);
  // Vectors; in the first reduction also the comparison with the next member.
  int open_parts_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t reductions_ ABSL_GUARDED_BY(mutex_) = 0;  // begun
  RepeatQueue<Outgoing> repeats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
