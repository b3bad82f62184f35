// Makes the shards ready for a chief that starts: reads what each of them is, takes command of all
// under a new term, and creates the variables. Repeated until every shard has answered.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/loop/executor.h"
#include "chief/recovery/announce_view.h"
#include "chief/recovery/choose_start.h"
#include "chief/recovery/take_command.h"
#include "chief/sync/shard_calls.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/client/ps_control.h"
#include "common/replicas/replica_view.h"

namespace lockstep::chief {

struct InitializedShards {
  SetViewRequest view;  // as of TakeCommand; of kPlanAfresh none: no shard has been told anything
  StartPoint start = StartPoint::kAsSpecified;
  JobProgress progress;        // not of kDone
  std::vector<int64_t> bytes;  // by shard; not of kDone
  // kTakeOver: with which the chief before trained, as texts; empty: not known.
  std::string job_before;
  std::string model_before;
  ReplicaViews replica_views;  // of a job whose workers come and go: the newest that a shard has
};

// What else a chief that takes command must have. An error ends it. Where the job is done already,
// only may_take is asked.
struct CommandHooks {
  // Whether this chief may announce the view, before anything else; null: it may. `follows_own`:
  // the step shard says that the term before is this chief's.
  std::function<absl::Status(const SetViewRequest& view, bool follows_own)> may_take;
  // Every shard has told what it is, and none has been told anything. `done` is called once, also
  // before the call returns, or never, if this chief no longer takes command.
  std::function<void(const SetViewRequest& view, StatusCallback done)> before;
  // The step shard has accepted the view, the others are told next. `done` as above.
  std::function<void(const SetViewRequest& view, StartPoint start, StatusCallback done)> accepted;
  // kTakeOver: the job goes on from shards that have trained with `job_before`, which `variables`
  // are about to replace. Null: nothing is kept of it.
  std::function<absl::Status(const std::string& job_before, CreateVariablesRequest* variables)>
      taken_over;
};

class ShardInitializer {
 public:
  // As ShardCalls; `on_done` is called once, with LostVariablesError where a shard that is taken
  // over has been started again since it was asked. Where the job is done already, shards that do
  // not answer soon are left out. `real_clock` counts the time in which this process stands still,
  // too: what shards have answered grows old meanwhile.
  ShardInitializer(RecoverySpec spec, CommandHooks hooks, std::vector<PsControl*> shards,
                   Executor* executor, const Clock* clock, const Clock* real_clock,
                   Callback<InitializedShards> on_done);

  // Before Start: this chief has had this command, of the same job. Ps that were all started again
  // know neither, and may still get an order of it.
  void FollowCommand(const Command& before);
  void Start();
  // Makes no further calls and asks no further hooks. Does not call `on_done`.
  void Stop() {
    if (!phases_.empty()) phases_.back()->Stop();
  }
  // As ShardCalls.
  void SetNames(const std::vector<std::string>& shard_names);
  // Repeats what is due. Several times a second.
  void Tick();
  // Which shards have not answered, why, and which variables are not initialised for that reason.
  // Empty when all have.
  std::string DescribeWaiting() const;
  // RecoverySpec::retries_creation: why a shard could not make its variables, at its last try.
  const absl::Status& creation_failure() const { return creation_failure_; }
  // Whether this chief goes on from shards that have trained, as they are. Where it fails, the next
  // chief may go on from them.
  bool takes_over() const { return result_.start == StartPoint::kTakeOver; }
  // Shards are still asked what they are, and the step shard, which has answered, was started
  // again, or has made all steps and keeps no version of the last one: nothing is to be saved or
  // evaluated. False once stopped.
  bool MayBeDone() const;
  // Why this shard does not answer; OK when it does.
  absl::Status Problem(size_t shard) const;

 private:
  // Asks those again that have answered: so they know that this chief is there, and waits for
  // others.
  void SendKeepalives();
  void OnRefused(const absl::Status& status);
  // Asks all shards again where what they have done would be given up for answers that are old.
  bool AskAgain();
  void SetViews();
  void SetStepShardView();
  void OnStepShardView();
  void SetOtherViews();
  void Announce(AnnounceTo to, void (ShardInitializer::*next)());
  void Judge();
  absl::Status FindReplicaViews();
  absl::Status PrepareTakeOver();
  void Create();
  // What is to be said of a shard that has not created its variables.
  absl::Status CreationError(const absl::Status& status);
  std::unique_ptr<ShardCalls> Calls(ShardCalls::Call call, void (ShardInitializer::*next)());
  void Finish();
  // The variables of shards that have not created theirs. Once there is something to create.
  std::string DescribeMissing() const;

  RecoverySpec given_;
  RecoverySpec spec_;  // RecoverySpecFor of it, once the shards have been asked
  const CommandHooks hooks_;
  const std::vector<PsControl*> shards_;
  Executor* const executor_;
  const Clock* const clock_;
  const Clock* const real_clock_;
  Callback<InitializedShards> on_done_;

  std::vector<SetViewReply> states_;
  std::vector<SetViewReply> seen_apart_;  // for which they are asked once more; or none
  int askings_ = 0;                       // of all shards what they are
  absl::Duration asked_;                  // when the last one began; of real_clock_
  bool names_job_ = false;                // the view on its way tells the step shard its job
  bool takes_term_ = false;       // a view is on its way, by which the step shard enters the term
  bool has_lost_naming_ = false;  // it has asked again after the step shard refused its job
  bool has_asked_again_ = false;  // after its term had been given to another chief
  absl::Duration phase_began_;
  InitializedShards result_;
  absl::Status creation_failure_;
  // One after another; all are kept, for answers that come late.
  std::vector<std::unique_ptr<ShardCalls>> phases_;
  const ShardCalls* asking_ = nullptr;    // the last one that asks what the shards are
  const ShardCalls* creating_ = nullptr;  // the last of them
  absl::Duration next_keepalive_;         // monotonic
};

}  // namespace lockstep::chief
