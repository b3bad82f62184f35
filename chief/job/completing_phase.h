// Every step is committed: until the last version is evaluated and saved.
#pragma once

#include <memory>

#include "chief/job/group_keeper.h"
#include "chief/job/job_state.h"
#include "chief/job/phase.h"
#include "chief/job/reminder.h"

namespace lockstep::chief {

class CompletingPhase final : public Phase {
 public:
  // As StartingPhase. `group`: of a replicated job; null: of another one.
  CompletingPhase(JobState* job, std::unique_ptr<GroupKeeper> group);

  void Start() override { EndIfComplete(); }
  void Tick() override;
  void OnEvent(JobEvent event) override;
  void Stop() override { stopped_ = true; }
  void Describe(JobFacts* facts) const override;

 private:
  void EndIfComplete();
  // Any worker that lives can evaluate the last version, under every quorum policy.
  void WatchQuorum();
  // No worker can while a shard is away. The last save has a patience of its own.
  void WatchShards();
  // The last version of a replicated job comes from a worker.
  void WatchHolders();

  JobState* const job_;
  const std::unique_ptr<GroupKeeper> group_;
  Reminder stall_reminder_;
  absl::Duration watched_since_;  // after the last save
  absl::Duration held_at_;        // a worker that lived had the last version
  bool stopped_ = false;
};

}  // namespace lockstep::chief
