// QuorumWatch evaluates whether the current step can close, as far as the chief knows.
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

  // `step` never goes back. Call it after successors of lost workers have been admitted.
  const Quorum& Evaluate(GlobalStep step);
  // The result of the last Evaluate; before it, that of a job that lacks no worker.
  const Quorum& quorum() const { return quorum_; }
  // Workers that can push for the step.
  uint32_t CountAble(GlobalStep step);
  OnShortage on_shortage() const { return rules_.on_shortage; }

  // Adds the shards' answers about `step`. `reaches_all`: grants reach every shard. For a token
  // queue it detects a stall: in two answers in a row every able worker waits for a token while
  // variables are open. The shards answer one after another, so one answer is no proof.
  void AddProgress(GlobalStep step, const ProgressByShard& progress, bool reaches_all);

 private:
  // Consecutive answers with every worker waiting, at this step, with the same members.
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
