// In which order each worker process has sent its calls, from the replies that they name. Calls may
// come late and in another order, also from a process that has died since.
// Pure: time is an argument. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "chief/membership/membership.h"
#include "common/base/ids.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

// Who calls. `Request` has the fields `worker` and `incarnation`.
template <typename Request>
LiveMember ProcessOf(const Request& request) {
  return {WorkerIndex(request.worker()), Incarnation(request.incarnation())};
}

class CallOrder {
 public:
  // `run`: of the job, by one chief. No other run of this chief or of others has the same. Not 0.
  explicit CallOrder(uint64_t run) : run_(run) {}

  // The id of a reply that is made now to the process that holds the index.
  ReplyId NumberReply(const LiveMember& process, absl::Duration now);

  // A registration that was sent before a call which has come already: a process that sends
  // heartbeats has registered.
  bool IsLate(const RegisterTaskRequest& request) const;
  // A heartbeat that was sent before the process got a reply which a call has named already.
  bool IsLate(const HeartbeatRequest& request) const;

  // A call has come that is not late. Returns when the last reply to the process was made, if the
  // process has got that one: it existed then.
  std::optional<absl::Duration> Receive(const LiveMember& process, const ReplyId& last_reply);
  // A heartbeat has come. True: it is the first one of the process.
  bool ReceiveHeartbeat(const LiveMember& process);

  // 0: of another run, or none.
  uint64_t NumberOf(const ReplyId& id) const { return id.run() == run_ ? id.number() : 0; }

  // The process began in another run: what it has got last is of that one.
  bool IsOfOtherRun(const HeartbeatRequest& request) const {
    return request.has_last_reply() && request.last_reply().run() != run_;
  }

 private:
  // Those to the process that was answered last of all that asked for an index.
  struct Replies {
    Incarnation to;
    uint64_t last = 0;  // number
    uint64_t got = 0;   // the highest number that a call has named; 0: none has
    absl::Duration last_made;
  };

  bool IsOvertaken(const LiveMember& process, const ReplyId& last_reply) const;

  const uint64_t run_;
  std::map<WorkerIndex, Replies> replies_;
  std::map<WorkerIndex, Incarnation> beating_;  // whose heartbeat came last
};

}  // namespace lockstep::chief
