// Sends the means of a primary's steps to its copy, as pushes of the only worker that the copy has,
// and again until the copy has taken them. To a new copy it sends the state, too (StateSender).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/gate.h"
#include "common/base/retry_policy.h"
#include "common/base/timer.h"
#include "common/tensor/tensor.h"
#include "common/transport/tensor_transport.h"
#include "ps/copy/mean_memory.h"
#include "ps/copy/mean_messages.h"
#include "ps/copy/state_sender.h"
#include "ps/shard/copy_target.h"

namespace lockstep::ps {

// Thread-safe. Steps follow each other: none is sent before all of the last one has been taken.
class CopySender final : public CopyTarget {
 public:
  // `transport` may share `memory` with the copy. `clock` outlives the sender. A new copy's is
  // ready after SetReady, and so is one that was told to Hold.
  CopySender(const CopyTargetOptions& options, MeanMemory memory,
             std::unique_ptr<TensorTransport> transport, std::unique_ptr<Timer> timer,
             const Clock* clock, const StateLimits& limits = {});
  // Close has been called. Not in a callback.
  ~CopySender() override = default;

  MutableTensorView MeanOf(VariableId variable, DType dtype, const Shape& shape) override;
  void Send(StepMeans means, StatusCallback taken) override;
  bool IsReady() const override { return is_ready_.load(); }
  void BeginState(StateBegin begin) override;
  bool LacksState() const override;
  void SendState(GlobalStep step, std::vector<std::span<const std::byte>> tensors,
                 StatusCallback taken) override;
  void End(const absl::Status& end) override;
  absl::Duration Silence() const override;

  // Of a copy that is as old as its primary, before it is used: means wait for SetReady, too.
  void Hold();
  void SetReady();
  // End with CANCELLED. Waits for callbacks under way, so never in one; none comes later.
  void Close();

 private:
  enum class State { kDue, kInFlight, kAcknowledged };
  // Means that are published together.
  struct Group {
    Group(StepMeans of, StatusCallback done) : means(std::move(of)), taken(std::move(done)) {}

    // Whether the copy is where it must be, at `shard_step`, to have taken what it has accepted. A
    // repeated push may be answered while the first one still reads the means in place. A step
    // without gradients has nothing else by which the copy has taken it.
    bool IsReachedBy(GlobalStep shard_step) const {
      return is_repeated || means.gradients.empty() ? shard_step > means.step
                                                    : shard_step >= means.step;
    }
    // To be called when all that was sent has been answered. True: the copy has taken it. Otherwise
    // marks what is to be sent again.
    bool CompleteOrMarkDue();

    const StepMeans means;
    StatusCallback taken;  // null: it has been told
    PushSeq push_seq;
    bool by_reference = false;               // the copy reads the messages' tensors in place
    bool is_repeated = false;                // something was sent twice
    std::vector<MeanMessage> messages;       // none: nothing has been sent
    std::vector<State> states;               // of the messages
    bool asks = false;                       // the first message goes without its payload
    size_t in_flight = 0;                    // messages that are queued or under way
    absl::flat_hash_set<uint32_t> accepted;  // variables
    bool has_reached = false;                // the copy has reached the step
  };

  struct QueuedMessage {
    std::shared_ptr<Group> group;
    size_t message;
    bool asks;
    uint64_t num_bytes;  // of tensors that travel with it
  };

  // The copy takes means from now on.
  void OnBegun() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendDue(const std::shared_ptr<Group>& group) ABSL_LOCKS_EXCLUDED(mutex_);
  void QueueMessages(const std::shared_ptr<Group>& group) ABSL_LOCKS_EXCLUDED(mutex_);
  // Messages of the queue, as many as may be under way.
  void SendQueued() ABSL_LOCKS_EXCLUDED(mutex_);
  // As the copy can read them now.
  void CutMessages(Group* group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnReply(const QueuedMessage& sent, const absl::StatusOr<TensorReply<PushReply>>& reply)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // ABORTED: the copy has closed the step without it.
  static absl::Status RecordOutcomes(const PushReply& reply, Group* group);
  void Refuse(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  PushSeq NextPush() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendLater(const std::shared_ptr<Group>& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const lockstep::WorkerIdentity primary_;
  const std::function<void(const absl::Status&)> refused_;
  const std::function<void(const absl::Status&)> lost_;
  const Clock* const clock_;
  std::atomic<bool> is_ready_;
  mutable absl::Mutex mutex_;
  MeanMemory memory_ ABSL_GUARDED_BY(mutex_);
  GlobalStep step_ ABSL_GUARDED_BY(mutex_){-1};
  PushSeq push_seq_ ABSL_GUARDED_BY(mutex_);  // of the step
  std::vector<std::shared_ptr<Group>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::deque<QueuedMessage> queue_ ABSL_GUARDED_BY(mutex_);
  size_t num_calls_ ABSL_GUARDED_BY(mutex_) = 0;  // under way
  uint64_t bytes_under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_begun_ ABSL_GUARDED_BY(mutex_);  // the copy; until then groups wait
  bool begins_when_ready_ ABSL_GUARDED_BY(mutex_) = false;
  RetryPolicy retry_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_answer_ ABSL_GUARDED_BY(mutex_);  // or when something began to be owed
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  Gate gate_;  // held by callbacks
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<StateSender> state_;          // of a new copy; otherwise null
  std::unique_ptr<TensorTransport> transport_;  // last: its callbacks use the rest
};

}  // namespace lockstep::ps
