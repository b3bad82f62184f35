// Tells the chief that this worker lives and what it does, and takes its orders: ranges to
// evaluate, the end of the job. One call is parked at the chief all the time; news are sent at once
// beside it. A last call tells the chief that its word of the end has come.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/group_view_id.h"
#include "common/base/monotonic_wait.h"
#include "common/base/retry_policy.h"
#include "common/client/chief_client.h"
#include "common/contact/silence_watch.h"
#include "worker/service/last_reply.h"
#include "worker/step/progress.h"

namespace lockstep::worker {

struct HeartbeatOptions {
  uint64_t job_id = 0;
  uint32_t worker = 0;
  uint64_t incarnation = 0;
  ReplyId last_reply;                            // to the registration
  absl::Duration patience = absl::Seconds(120);  // with a chief that cannot be reached
  absl::Duration lease = absl::Seconds(5);       // a longer silence of the chief is logged
  const Clock* clock = Clock::Real();
};

// Thread-safe.
class Heartbeat {
 public:
  struct Callbacks {
    std::function<std::vector<EvaluationResult>()> results;
    // Of a replicated job: GroupSource::failed_view.
    std::function<GroupViewId()> failed_view;
    // Applies a reply. Called with one reply at a time, and not with one that comes after a newer
    // one: it would withdraw leases and turn back to places that were left.
    std::function<void(const HeartbeatReply&)> reply;
    // Who is called, for the log: "chief 1 (host:port)".
    std::function<std::string()> chief_name;
    // Once: OK when the job is over; the job's failure; or why the chief is lost. On the
    // heartbeat's thread, before the last call.
    std::function<void(absl::Status)> end;
  };

  // `chief` and `progress`, of all that train here, outlive the heartbeat.
  Heartbeat(const HeartbeatOptions& options, ChiefClient* chief, std::span<const Progress> progress,
            Callbacks callbacks);
  // Waits for the calls in flight, a second each where the chief answers.
  ~Heartbeat();

  // Sends now.
  void SendNow();
  // From now on tells that the worker can take part in steps; that it departs. Sends now.
  void SetReady();
  void Depart();
  // Tells the chief that this process ends, so that it need not wait for the lease to end. Sends
  // nothing afterwards. Blocks until the chief has heard it, `limit` at most. Once.
  void Leave(absl::Duration limit);

 private:
  void Beat();
  // A call that counts as in flight already. Blocks until it is answered, `limit` at most.
  void SendLast(const HeartbeatRequest& request, absl::Duration limit);
  // Of the calls in flight. A worker that has lost its membership may not have noticed yet that the
  // chief is silent: where `is_watching`, it is told meanwhile.
  void AwaitAnswers(bool is_watching);
  // The line to log, if any.
  std::optional<std::string> CheckChief(std::string chief_name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MaySend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return in_flight_ == 0; }
  HeartbeatRequest MakeRequest() const;
  void OnReply(absl::StatusOr<HeartbeatReply> reply);
  // What to log, if anything.
  void Apply(const HeartbeatReply& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<std::string> OnSuccess(const HeartbeatReply& reply, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnFailure(const absl::Status& failure, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HeartbeatOptions options_;
  ChiefClient* const chief_;
  const std::span<const Progress> progress_;
  const Callbacks callbacks_;
  std::atomic<bool> is_ready_ = false;
  std::atomic<bool> departs_ = false;
  LastReply last_reply_;

  absl::Mutex mutex_;
  std::deque<HeartbeatReply> to_apply_ ABSL_GUARDED_BY(mutex_);  // in the order of their ids
  bool is_applying_ ABSL_GUARDED_BY(mutex_) = false;             // a thread applies them
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool kicked_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  MonotonicCondVar changed_;
  absl::Duration pause_ ABSL_GUARDED_BY(mutex_);  // before the next call
  RetryPolicy retry_ ABSL_GUARDED_BY(mutex_);
  SilenceWatch watch_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool is_told_end_ ABSL_GUARDED_BY(mutex_) = false;  // by the chief
  std::thread thread_;                                // last: uses all above
};

}  // namespace lockstep::worker
