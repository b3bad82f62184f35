// The replica views of a job whose workers come and go: who shares the global batch from which step
// on, and how many gradients a step needs when replicas of its view are gone.
//
// A worker is taken in when it is ready, and left out when it departs or says goodbye, or is lost
// for as long as the quorum policy waits: SHRINK not at all, WAIT for the deadline. There is never
// a view of fewer replicas than min_replicas: until then the replicas that are lost are waited for.
// Pure: time is an argument and never goes back. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "chief/membership/membership.h"
#include "chief/membership/quorum.h"
#include "chief/membership/replica_rules.h"
#include "common/replicas/replica_view.h"

namespace lockstep::chief {

class ElasticReplicas {
 public:
  // `deadline`: how long WAIT waits for a lost replica. `membership` outlives this.
  ElasticReplicas(const ReplicaRules& rules, OnShortage on_shortage, absl::Duration deadline,
                  const Membership* membership);

  // The views that an earlier chief has announced.
  void Adopt(ReplicaViews views) { views_ = std::move(views); }
  const ReplicaViews& views() const { return views_; }
  // The members that every shard has accepted.
  void SetConfirmed(std::vector<LiveMember> members) { confirmed_ = std::move(members); }

  // Makes the first view, of the confirmed members, from `first` on. False: too few of them fit.
  bool Begin(GlobalStep first);
  // Makes the view that follows the newest one, from `first` or the step after the newest's first
  // on, whichever is later; false: it stays as it is. No worker can have a token of `first` yet.
  // Views that ended before `at_hand` are forgotten.
  bool Update(GlobalStep at_hand, GlobalStep first, absl::Duration now);

  // Gradients that a step needs: those that its view says, fewer where replicas of its view are
  // gone for good. The successor of one that is left out counts when it is ready.
  uint32_t RequiredOf(GlobalStep step) const;
  ReplicaShare ShareOf(GlobalStep step, WorkerIndex worker) const;
  // Whether the step can close.
  const Quorum& Evaluate(GlobalStep step);
  // Whether those who live are enough for a view, once all others are given up.
  bool HasEnough() const;
  // As of the last Evaluate.
  const Quorum& quorum() const { return quorum_; }

 private:
  bool IsLive(WorkerIndex worker) const;
  bool IsConfirmed(WorkerIndex worker) const;
  // It has said goodbye.
  bool HasLeft(WorkerIndex worker) const;
  // This process may push for a view before the newest one, which has left its worker out: it was
  // the worker then, and no successor of it.
  bool HasTakenPart(const LiveMember& process) const;
  // A step of a view before the newest one needs a gradient of this worker.
  bool IsNeeded(WorkerIndex worker) const;
  void NoteLeftOut(const std::vector<WorkerIndex>& before, const std::vector<WorkerIndex>& now);
  // In the next view: it lives, stays, and is in the newest one or ready for it.
  bool MayTakePart(WorkerIndex worker) const;
  // Whether the job goes on without this replica of the newest view, which is not live.
  bool IsGivenUp(WorkerIndex worker, absl::Duration now);
  std::vector<WorkerIndex> Candidates(absl::Duration now);

  const ReplicaRules rules_;
  const OnShortage on_shortage_;
  const absl::Duration deadline_;
  const Membership* const membership_;
  ReplicaViews views_;
  std::vector<LiveMember> confirmed_;
  std::map<WorkerIndex, absl::Duration> missing_since_;  // replicas that are not live
  // Processes whose workers a view of this chief has left out, until a later one takes them in.
  std::map<WorkerIndex, Incarnation> left_out_;
  Quorum quorum_;
};

}  // namespace lockstep::chief
