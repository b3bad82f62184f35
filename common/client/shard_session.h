// One user of one shard (a replica's training, or its evaluation): sends its gradients, fetches
// values, and repeats what was lost.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/gate.h"
#include "common/base/retry_policy.h"
#include "common/base/timer.h"
#include "common/client/fetched_values.h"
#include "common/client/gradient_messages.h"
#include "common/client/session_types.h"
#include "common/transport/tensor_transport.h"

namespace lockstep {

// Thread-safe. One gradient, one fetch, one dequeue and one Open at a time, beside one another. An
// error is told when it cannot be repaired by repeating. Callbacks come on the threads of
// `transport` and `timer`, or before the call returns. Tensors and targets stay as they are until
// their callback; gradients in a GradientMemory until the next token, where each replica has one.
// Of a transport that may move (TensorTransport::generation) gradients stay until ForgetGradient:
// another peer gets them again.
class ShardSession {
 public:
  // What is pointed to outlives the session.
  ShardSession(const SessionOptions& options, TensorTransport* transport, Timer* timer,
               const Clock* clock = Clock::Real());
  // Pending callbacks are told CANCELLED. Waits for calls in flight: Cancel ends them. Never in a
  // callback.
  ~ShardSession();

  // Tells whether tensors may go by reference. This must be known before the first tensor where it
  // decides the type on the wire.
  void Open(Callback<TransportInfo> done);

  // `on_loss` is told why a gradient that was judged cannot be sent to the peer that serves the
  // shard now: the step cannot end. At most once for a gradient, never after ForgetGradient or
  // Cancel. Called before the first gradient.
  void NotifyOfLoss(std::function<void(const absl::Status&)> on_loss);

  // What Fetch brings, by target. Not while a fetch is under way.
  void SetTargets(std::vector<FetchTarget> targets);
  // Other memory or rows for a target of the same variable.
  void SetTarget(size_t target, MutableTensorView value,
                 std::optional<std::span<const int64_t>> rows = {});
  // Fetches all targets in their order at `version`, waiting until it exists. `done` is told the
  // version that all of them have: the one requested, or a newer one where that is kept no longer.
  // Asynchronous: waits for nothing, and tells the lowest version of any target, or `version` where
  // there was nothing to fetch.
  void Fetch(GlobalStep version, FetchKind kind, Callback<GlobalStep> done);
  // After a fetch, until the next one: where the value of a target is. In the ps's memory it is
  // that of its version until the ps makes one that is two above.
  const void* Value(size_t target) const;
  // After a fetch of a slot: PullReply.scalars.
  std::vector<float> Scalars() const;

  // Begins a gradient of so many variables. Not before the callback of the last EndStep.
  void BeginGradient(PushSeq push_seq, GlobalStep local_step, int num_tensors);
  void Add(const GradientTensor& gradient);
  // Sends what was added, as far as the window allows. The last variable is sent without. This is
  // the send loop: it runs on one thread at a time, so that messages leave in their order. Where
  // another thread is in it, that one goes on, and the call returns at once.
  void Flush();
  // All variables were added. A gradient that waited is sent, with the request for a token unless
  // `dequeue_seq` is 0, and with the first request of a fetch that has begun since BeginGradient.
  // `done` is told when the shard has judged all of it; a token and values that came along are
  // there before.
  void EndStep(DequeueSeq dequeue_seq, Callback<PushSummary> done);
  // Before EndStep: whether that makes one call, which the shard answers when the step is over.
  bool HoldsGradient() const;
  // Whether the shard may lack a part of the gradient, or has not judged it: from BeginGradient to
  // the callback of EndStep, but not while the one call that is answered at the end of the step has
  // been made.
  bool OwesGradient() const;
  // `token_step`: DequeueTokenRequest::token_step.
  void DequeueToken(DequeueSeq dequeue_seq, GlobalStep token_step,
                    Callback<DequeueTokenReply> done);
  // Once the step is over, in a job whose shards may move: the last gradient is not sent again, and
  // its tensors may change after `done`. No gradient is under way.
  void ForgetGradient(absl::AnyInvocable<void()> done);

  // Ends what is pending, and later calls, with CANCELLED; with it all calls of the transport.
  void Cancel();

 private:
  // A call without tensors, made again until it is answered.
  template <typename T>
  struct ParkedCall {
    absl::AnyInvocable<void(Callback<T>)> start;
    Callback<T> done;  // null: none is pending
    RetryPolicy retry{CallKind::kParked};
    bool is_in_flight = false;
  };
  // A call with tensors.
  struct Call {
    Gate::Pass pass;
    std::optional<PushCall> push;
    std::optional<FetchCall> fetch;
    DequeueSeq dequeue_seq;
    uint64_t generation = 0;  // of a push: the session's, when it was made
  };
  // What becomes of a gradient's first message.
  struct Fusing {
    // Fetches wait for a gradient that may take them along.
    bool HoldsFetches() const { return awaits_message || held.has_value(); }

    bool awaits_message = false;   // it may be the whole gradient
    std::optional<PushCall> held;  // it is, and waits for EndStep
    bool has_ended = false;
    bool is_parked = false;  // it was sent, and is answered when the step is over
    DequeueSeq dequeue_seq;
    std::optional<DequeueTokenReply> token;  // came along
  };
  struct Loop {
    bool is_running = false;
    bool runs_again = false;
    bool is_cancelled = false;
    absl::Duration wakes_at = absl::InfiniteDuration();  // when the timer calls
  };

  // Of the send loop, Flush: each does one thing; false: there is nothing to do.
  bool TellForgotten();
  bool TellLost();
  bool TellFetched();
  bool TellPushed();
  bool SendPush();
  bool SendFetch();
  template <typename T>
  bool Send(ParkedCall<T>* call) ABSL_LOCKS_EXCLUDED(mutex_);
  template <typename T>
  void Start(ParkedCall<T>* call, absl::AnyInvocable<void(Callback<T>)> start, Callback<T> done);
  template <typename T>
  void OnAnswer(ParkedCall<T>* call, absl::StatusOr<T> answer);
  void SendFused(std::shared_ptr<const Call> call);
  void OnPushed(const Call& call, const PushAnswer& reply);
  void OnFused(const Call& call, absl::StatusOr<TensorReply<PushReply>> reply);
  void OnFetched(const FetchCall& fetch, absl::StatusOr<FetchedValues::Reply> reply);
  // Lets the transport agree with the ps on what is shared, beside the first calls and when the ps
  // has lost it.
  void OpenTransport();
  // Lets plans send nothing more.
  void CancelPlans() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cancelled, or about to go: no call is made again.
  bool HasEnded() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs again when the first retry is due.
  void ArmTimer();

  const SessionOptions options_;
  TensorTransport* const transport_;
  Timer* const timer_;
  const Clock* const clock_;
  // Another peer gets the gradient again, also when no call to the one before is under way.
  std::shared_ptr<const std::function<void()>> on_move_;
  std::function<void(const absl::Status&)> on_loss_;  // may be null
  const std::shared_ptr<Gate> gate_;  // held by calls in flight; outlives the session for the timer
  // Kept by Open's callback, which may come later than the session ends.
  const std::shared_ptr<std::atomic<bool>> needs_open_ = std::make_shared<std::atomic<bool>>(true);
  mutable absl::Mutex mutex_;
  GradientMessages gradient_ ABSL_GUARDED_BY(mutex_);
  Fusing fusing_ ABSL_GUARDED_BY(mutex_);
  Callback<PushSummary> pushed_ ABSL_GUARDED_BY(mutex_);
  absl::AnyInvocable<void()> forgotten_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // of the transport
  FetchedValues values_ ABSL_GUARDED_BY(mutex_);
  Callback<GlobalStep> fetched_ ABSL_GUARDED_BY(mutex_);
  ParkedCall<TransportInfo> open_ ABSL_GUARDED_BY(mutex_);
  ParkedCall<DequeueTokenReply> token_ ABSL_GUARDED_BY(mutex_);
  Loop loop_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
