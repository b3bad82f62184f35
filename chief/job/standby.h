// A chief that stands by: it waits at the step shard until nobody commands, and says so.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/job/reminder.h"
#include "chief/loop/executor.h"
#include "chief/recovery/command_observer.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/client/ps_control.h"
#include "proto/status.pb.h"

namespace lockstep::chief {

class Standby {
 public:
  struct Hooks {
    // Takes command, and calls WaitAgain if another chief was faster.
    std::function<void()> take_command;
    // Once: OK when the job is done, or what it was given up with.
    StatusCallback on_end;
    // Looks for the job's last checkpoint, which was there when it was planned; empty: there is
    // none. Called only with ObserverOptions::is_done, and when the last call of it has ended.
    std::function<void(Callback<std::string> done)> find_end;
  };

  // `request`: what it asks with, but the term. What is pointed to outlives the calls in flight:
  // destroy it after the executor has ended.
  Standby(ObserverOptions options, WatchCommandRequest request, PsControl* step_shard,
          Executor* executor, const Clock* clock, Hooks hooks);

  void Start();
  // Several times a second, while it waits.
  void Tick();
  // It waits no more, and calls no hook.
  void Stop() { is_waiting_ = false; }
  // OK if a view of this term is the next one that this chief may announce; ABORTED: another chief
  // has announced one meanwhile.
  absl::Status MayTake(uint64_t term);
  // The step shard has accepted this chief's view of this term: when the job goes back to a
  // checkpoint the next one is this chief's, too.
  void NoteTaken(uint64_t term) { observer_.NoteTerm(term); }
  // Another chief has taken command.
  void WaitAgain();
  // As in ObserverOptions: addresses have changed.
  void SetNames(std::vector<std::string> chiefs, std::string step_shard);

  bool is_waiting() const { return is_waiting_; }
  // UNAVAILABLE: what workers are told that call this chief.
  absl::Status Refusal() const;
  // Asks the step shard who commands, for a second.
  void GetStatus(Callback<ProcessStatus> done);

 private:
  struct StatusCall;

  void Ask();
  void OnAnswer(const absl::StatusOr<WatchCommandReply>& reply);
  void OnFailure(const absl::Status& failure);
  // No ps is there, and the job is done if its last checkpoint still is.
  void LookForEnd();
  // `answers`: how many there were when it began to look.
  void OnLook(const absl::StatusOr<std::string>& checkpoint, uint64_t answers);
  absl::Status EndUnknownError() const;
  void Follow(const CommandObserver::Decision& decision);
  // A line for each chief that it stands by for.
  void LogCommander(const CommandStatus& status);

  ObserverOptions options_;
  WatchCommandRequest request_;
  PsControl* const step_shard_;
  Executor* const executor_;
  const Clock* const clock_;
  Hooks hooks_;
  CommandObserver observer_;
  Reminder reminder_;
  bool is_waiting_ = false;
  bool is_asking_ = false;
  absl::Duration next_call_;
  uint64_t num_answers_ = 0;                   // of the step shard
  bool is_looking_ = false;                    // find_end is under way
  std::optional<uint64_t> found_end_;          // answers before the look that found the end
  std::optional<absl::Duration> looks_since_;  // without having seen whether the job is done
  absl::Status look_failure_;                  // of the last look
  uint64_t logged_chief_ = 0;
  std::vector<std::shared_ptr<StatusCall>> status_calls_;
};

}  // namespace lockstep::chief
