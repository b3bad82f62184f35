// Answers refused calls: the one place that an error of a call goes through.
#pragma once

#include <grpcpp/server_context.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "common/log/throttle.h"
#include "common/security/caller.h"
#include "common/security/refusal_pace.h"

namespace lockstep::rpc {

// A call that ends with an error.
struct RefusedCall {
  const void* call;  // names it for Drop
  absl::StatusCode code;
  const std::optional<security::Caller>& caller;
  const grpc::ServerContextBase& context;
  uint64_t message_bytes;
};

// "worker/1"; where nobody knows who calls, the host of the connection: "ipv4:127.0.0.1".
std::string CallerName(const std::optional<security::Caller>& caller,
                       const grpc::ServerContextBase& context);

// Holds the answers to a caller who is refused again and again (common/security/refusal_pace.h).
// Calls that are answered OK do not come here. Thread-safe.
class RefusalSender {
 public:
  using Answer = absl::AnyInvocable<void()>;

  // Both outlive it, or the timer is destroyed before.
  RefusalSender(Timer* timer, const Clock* clock) : timer_(timer), clock_(clock) {}

  // Calls `send` once: on this thread, or later on one of the timer's. It keeps the call alive, and
  // what the call does not need for the answer is freed before.
  void Send(const RefusedCall& refused, Answer send);
  // Destroys a held answer: its caller has gone.
  void Drop(const void* call);
  // Sends what is held, and from then on everything at once.
  void Stop();

  size_t num_held();

 private:
  using Due = std::pair<absl::Duration, const void*>;  // when, and the answer to which call

  // Whether the answer is held. Otherwise `send` is left as it is. May set a line for the log.
  bool TryHold(const void* call, absl::string_view caller, uint64_t message_bytes, Answer* send,
               std::optional<std::string>* line);
  void Arm(absl::Duration due);
  void SendDue(absl::Duration due);

  Timer* const timer_;
  const Clock* const clock_;
  absl::Mutex mutex_;
  security::RefusalPace pace_ ABSL_GUARDED_BY(mutex_);
  std::map<Due, Answer> held_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const void*, absl::Duration> due_of_ ABSL_GUARDED_BY(mutex_);
  // The earliest time that the timer will call at. Later calls find nothing to do.
  absl::Duration armed_for_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  bool has_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  log::Throttle lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::rpc
