// Every step is committed: until the last version is evaluated and saved.
#pragma once

#include "chief/job/job_state.h"
#include "chief/job/phase.h"
#include "chief/job/reminder.h"

namespace lockstep::chief {

class CompletingPhase final : public Phase {
 public:
  // As StartingPhase.
  explicit CompletingPhase(JobState* job);

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

  JobState* const job_;
  Reminder stall_reminder_;
  absl::Duration watched_since_;  // after the last save
  bool stopped_ = false;
};

}  // namespace lockstep::chief
