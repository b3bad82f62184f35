// Sends the state of a primary to a copy that was made while the job trains: at the end of each
// step a part, read where it lies, and again until the copy has taken it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/gate.h"
#include "common/base/lost_variables.h"
#include "common/base/retry_policy.h"
#include "common/base/timer.h"
#include "common/transport/tensor_transport.h"
#include "ps/copy/state_budget.h"
#include "ps/copy/state_plan.h"
#include "ps/shard/copy_target.h"

namespace lockstep::ps {

// Of calls to a copy: steps wait for them.
inline constexpr RetryOptions kCopyRetry{.first_pause = absl::Milliseconds(5),
                                         .longest_pause = absl::Milliseconds(200)};

// A copy that was started again refuses like one that serves the workers, and does not serve them:
// UNAVAILABLE, until the chief lets the primary go on alone.
inline absl::Status FailureOfCopy(const absl::Status& status) {
  return LacksVariables(status) ? absl::UnavailableError(status.message()) : status;
}

struct StateLimits {
  uint64_t least_part_bytes = uint64_t{64} << 10;  // what a message is worth
  uint64_t message_bytes = uint64_t{1} << 20;      // at most
};

// Thread-safe. Callbacks as CopyTarget's.
class StateSender {
 public:
  // The first four outlive the sender. Callbacks are inside the gate.
  struct Options {
    TensorTransport* transport;
    Timer* timer;
    const Clock* clock;
    Gate* gate;
    StateLimits limits;
    lockstep::WorkerIdentity primary;                  // at its copy
    std::function<void()> begun;                       // the copy has begun
    std::function<void(const absl::Status&)> refused;  // by the copy
  };

  explicit StateSender(Options options) : options_(std::move(options)) {}

  // As CopyTarget's.
  void Begin(StateBegin begin) ABSL_LOCKS_EXCLUDED(mutex_);
  void Send(GlobalStep step, const std::vector<std::span<const std::byte>>& tensors,
            StatusCallback taken) ABSL_LOCKS_EXCLUDED(mutex_);
  // False after End, too.
  bool LacksState() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The last message has been sent: the copy may have all, and serve the workers.
  bool MayBeComplete() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration Silence() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends nothing more. Tells `end` when no message reads the tensors any longer: after that the
  // caller cancels the transport.
  void End(const absl::Status& end) ABSL_LOCKS_EXCLUDED(mutex_);
  // After End and the transport's Cancel: waits until nothing is in flight. Not in a callback.
  void AwaitIdle() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Message {
    PutStateRequest header;
    std::vector<OutgoingTensor> tensors;  // point into the state
  };
  using Pending = std::shared_ptr<const Message>;

  Pending MakeMessage(GlobalStep step, const std::vector<StateRange>& ranges,
                      const std::vector<std::span<const std::byte>>& tensors) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The message that completes the state.
  Pending MakeLast() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendDue() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendLater() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReply(const Pending& message, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // All messages have been answered: the callback that is to be told; null: one more is due.
  StatusCallback Finish(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::vector<StateTensor> tensors_ ABSL_GUARDED_BY(mutex_);
  std::optional<StatePlan> plan_ ABSL_GUARDED_BY(mutex_);  // since Begin
  std::optional<StateBudget> budget_ ABSL_GUARDED_BY(mutex_);
  // What is being sent: the beginning or a part.
  std::deque<Pending> due_ ABSL_GUARDED_BY(mutex_);
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  StatusCallback taken_ ABSL_GUARDED_BY(mutex_);  // null: nothing is being sent
  GlobalStep step_ ABSL_GUARDED_BY(mutex_){-1};   // of the part; of the beginning -1
  uint64_t part_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration part_began_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_end_ ABSL_GUARDED_BY(mutex_);  // of what was sent before
  bool has_sent_last_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_complete_ ABSL_GUARDED_BY(mutex_) = false;
  RetryPolicy retry_ ABSL_GUARDED_BY(mutex_){CallKind::kPlain, kCopyRetry};
  absl::Duration last_answer_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
