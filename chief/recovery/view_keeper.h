// Tells every shard who the members are, again after every change, and knows which members all
// shards have accepted: a change of membership counts only then.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/loop/executor.h"
#include "chief/membership/membership.h"
#include "chief/sync/retry.h"
#include "chief/sync/shard_problem.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/client/ps_control.h"
#include "common/replicas/replica_view.h"

namespace lockstep::chief {

class ViewKeeper {
 public:
  // `view` comes from ShardInitializer. `on_confirmed` is called when the confirmed members
  // changed; `on_error` for an error that repeating does not repair, such as a shard that was
  // started again and has no variables. `real_clock` counts the time in which this process stands
  // still, too: to a ps that is silence. The rest as ShardCalls.
  ViewKeeper(SetViewRequest view, std::vector<PsControl*> shards,
             std::vector<std::string> shard_names, Executor* executor, const Clock* clock,
             const Clock* real_clock, std::function<void()> on_confirmed,
             std::function<void(absl::Status)> on_error);

  // Replaces what was to be told; a shard that is slow is told the last one only.
  void SetMembers(std::vector<LiveMember> members);
  // Tells every shard the same members again: what else a view says has changed. `shard_names` as
  // of now.
  void AnnounceAgain(std::vector<std::string> shard_names);
  // The same for the replica views of a job whose workers come and go; not empty.
  void SetReplicaViews(const ReplicaViews& views);
  // Repeats what is due; what every shard has is repeated now and then, so that a ps knows that its
  // chief lives. Several times a second.
  void Tick();
  void Stop() { stopped_ = true; }

  // Of the newest view that every shard has accepted.
  const std::vector<LiveMember>& confirmed() const { return confirmed_; }
  bool IsConfirmed(const LiveMember& member) const;
  const ShardProblem& problem(size_t shard) const { return states_[shard].problem; }
  // Every shard has accepted the newest replica views.
  bool HasConfirmedReplicas() const { return confirmed_replicas_ == newest_replicas_; }
  // As the step shard said when it accepted that view, or later: the first step that it has not
  // closed, and the version that its variables were created with.
  GlobalStep open_step() const { return open_step_; }
  GlobalStep start_step() const { return start_step_; }

 private:
  struct Shard {
    uint64_t accepted = 0;  // number of the view
    Retry retry;
    absl::Duration sent;  // when it was last told; of real_clock_
    ShardProblem problem;
  };

  struct Announced {
    std::vector<LiveMember> members;
    uint64_t replicas = 0;  // number of the newest replica view
  };

  void Send(size_t shard);
  void OnAnswer(size_t shard, uint64_t view, const absl::StatusOr<SetViewReply>& reply);

  SetViewRequest view_;  // with the replica views, without members
  const std::vector<PsControl*> shards_;
  std::vector<std::string> shard_names_;
  Executor* const executor_;
  const Clock* const clock_;
  const Clock* const real_clock_;
  const std::function<void()> on_confirmed_;
  const std::function<void(absl::Status)> on_error_;

  std::vector<Shard> states_;
  // By number, from the confirmed one to the newest. View 0 has no members.
  std::map<uint64_t, Announced> views_;
  std::vector<LiveMember> confirmed_;
  uint64_t newest_replicas_ = 0;
  uint64_t confirmed_replicas_ = 0;
  GlobalStep open_step_;
  GlobalStep start_step_;
  bool stopped_ = false;
};

}  // namespace lockstep::chief
