// Whether the step at hand can close, as far as the chief knows.
//
// Lives on the executor's thread.
#pragma once

#include <cstdint>

#include "chief/job/job_facts.h"
#include "chief/membership/membership.h"
#include "chief/membership/quorum.h"
#include "chief/recovery/view_keeper.h"

namespace lockstep::chief {

class QuorumWatch {
 public:
  // `membership` and `views` outlive the watch.
  QuorumWatch(const QuorumRules& rules, Membership* membership, const ViewKeeper* views);

  // For `step`, which never goes back. Call it after successors of lost workers have been let in.
  const Quorum& Evaluate(GlobalStep step);
  // As of the last Evaluate; until then of a job that lacks nobody.
  const Quorum& quorum() const { return quorum_; }
  // Workers that can push for the step.
  uint32_t CountAble(GlobalStep step);
  OnShortage on_shortage() const { return rules_.on_shortage; }

  // What the shards said that `step` waits for; `reaches_all`: grants reach every shard. With a
  // token queue two in a row that find every able worker waiting for a token while variables are
  // open prove that the step is stalled: the shards answer one after another, so one is no proof.
  void AddProgress(GlobalStep step, const ProgressByShard& progress, bool reaches_all);

 private:
  // Answers in a row that found every worker waiting, at this step, with the same members.
  struct Stall {
    GlobalStep step;
    uint64_t membership = 0;
    int answers = 0;
  };

  ReplicaCounts Count(GlobalStep step);

  const QuorumRules rules_;
  Membership* const membership_;
  const ViewKeeper* const views_;
  Quorum quorum_;
  Stall stall_;
};

}  // namespace lockstep::chief
