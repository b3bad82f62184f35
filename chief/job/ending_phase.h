// Ends the job: saves the last committed step if that is wanted, tells the workers, then the ps.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/job/drain.h"
#include "chief/job/job_state.h"
#include "chief/job/phase.h"
#include "chief/sync/shard_calls.h"

namespace lockstep::chief {

class EndingPhase final : public Phase {
 public:
  // As StartingPhase.
  EndingPhase(JobState* job, JobEnd end);

  void Start() override;
  void Tick() override;
  void OnEvent(JobEvent event) override;
  void Stop() override {}
  void Describe(JobFacts* facts) const override;

  // The job is to end once more, as PhaseControl says. Where nobody was told because the job was to
  // go back to a checkpoint, this end is told, and `on_end` is called once more.
  void EndAgain(JobEnd end);

 private:
  enum class Stage { kSaving, kTellingWorkers, kReleasingShards, kEndingLease, kOver };

  bool MaySave() const;
  // It has ended, and nobody was told: the job is to go back to a checkpoint.
  bool HasGoneBack() const;
  // After the save that is under way.
  void DrainIfIdle();
  // The version that could be saved is one that the workers alone have, and too few of them live to
  // make the next one.
  bool LacksWorkers() const;
  void OnDrained(const absl::StatusOr<Drain::Saved>& saved);
  // What could not be saved stays at the ps where the job can go on.
  void FinishUnsaved(const absl::Status& why);
  void Finish(absl::Status outcome, Told told);
  void WatchTelling();
  bool WorkersKnow() const;
  // That the shards know; null: none is known to have heard of the job.
  const Command* CommandOfShards() const;
  void ReleaseShards();
  // Once the step shard has been waited for: whether a standby needs none of the other shards.
  bool MayTellOthersAnyway() const;
  void TellOthersAnyway();
  // Tells `answered` the error that ends the release, or that is to be repeated, and otherwise OK:
  // a shard that refuses for another reason has heard it.
  void OnShardTold(size_t shard, const absl::Status& status, StatusCallback answered);
  // Where copies of shards are and have not heard the end; empty: nowhere.
  std::string UnfinishedPlaces() const;
  void EndLease();
  // The step shard has another chief: what the shards are told is that one's. A shard that it has
  // not told yet would still obey this one, and may have where it was told before the step shard
  // answered.
  void ConcludeFenced(const absl::Status& refusal);
  void Conclude();

  JobState* const job_;
  JobEnd end_;
  Stage stage_ = Stage::kSaving;
  absl::Duration deadline_;  // of the stage
  std::optional<Drain> drain_;
  Told told_ = Told::kEverybody;
  bool releases_shards_ = false;
  bool tells_others_ = false;          // the shards other than the step shard
  std::optional<ShardCalls> release_;  // Finish
};

}  // namespace lockstep::chief
