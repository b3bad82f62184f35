// Keeps the lease of the chief that commands at the step shard, and ends it with the chief. Standby
// chiefs wait there for that end.
//
// Lives on the executor's thread.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/loop/executor.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

class LeaseKeeper {
 public:
  // `renewal` names command, chief and length, and has no end. What is pointed to outlives the
  // calls in flight: destroy the keeper after the executor has ended.
  LeaseKeeper(RenewLeaseRequest renewal, PsControl* step_shard, Executor* executor,
              const Clock* clock);

  // A view that the step shard has accepted renews the lease too.
  void SetCommand(const Command& command);
  const Command& command() const { return renewal_.command(); }
  // Renews what is due, whether or not earlier calls have been answered. Several times a second.
  void Tick();
  // ABORTED once the step shard has another chief.
  const absl::Status& status() const { return status_; }
  // Whether this chief may announce a view with `next`, the command that follows from what the
  // shards say: ABORTED once its lease was refused, or where the term before is another chief's,
  // unless the step shard says that it is this one's (`follows_own`).
  absl::Status MayAnnounce(const Command& next, bool follows_own) const;

  // Renews no more.
  void Stop() { is_over_ = true; }
  // Stops, and tells the step shard that this chief has left (Release), or that the job is over
  // with the exit code of `outcome` (EndJob). `done` is called once, with the step shard's answer.
  void Release(StatusCallback done);
  void EndJob(const absl::Status& outcome, StatusCallback done);

 private:
  void End(RenewLeaseRequest request, StatusCallback done);

  RenewLeaseRequest renewal_;
  const absl::Duration period_;
  PsControl* const step_shard_;
  Executor* const executor_;
  const Clock* const clock_;
  absl::Duration next_;  // monotonic
  absl::Status status_;
  bool is_over_ = false;
};

}  // namespace lockstep::chief
