// Decides, as the tasks of a local run end one after another, which are started again, whether the
// run goes on, and what it comes to. Pure: processes, clock and terminal are the supervisor's. Not
// thread-safe.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/config/cluster_spec.h"

namespace lockstep::deploy {

class RunOutcome {
 public:
  struct Member {
    Role role = Role::kWorker;
    int index = 0;
  };
  enum class Phase {
    kRunning,
    kFinishing,    // the chief is done: the others end by themselves
    kStopping,     // the same, because the job was told to end
    kFailing,      // the run has failed: the processes that are left must be stopped
    kInterrupted,  // the same, because the user said so
  };

  struct Rules {
    int workers_needed = 1;    // steps close as long as so many workers live
    bool keeps_state = false;  // of a ps that dies: in a checkpoint, or another ps has a copy
    bool has_standby = false;  // a chief that finds another one in its place stands by for that
  };
  struct TaskEnd {
    std::string note;  // what to tell the user; empty when all is as it should be
    bool start_again = false;
  };

  RunOutcome(std::vector<Member> members, const Rules& rules);

  // `wait_status` is from waitpid, `now` monotonic. A task that is to be started again counts as
  // alive.
  TaskEnd TaskEnded(size_t task, int wait_status, absl::Duration now);
  // The job trains, or has trained.
  void NoteBegun() { has_begun_ = true; }
  // A task that was to be started again is not, because the run comes to its end.
  void CallOffReturn(size_t task) { CountOut(task); }
  // A task that was to be started again could not be. Returns what to tell the user.
  std::string CannotReturn(size_t task, const absl::Status& why);
  // The user's signal (SIGINT, SIGTERM, SIGHUP).
  void Interrupt(int signal);
  // The tasks that are left had their time after the chief's end. Returns what to tell the user.
  std::string FinishingTookTooLong();

  Phase phase() const { return phase_; }
  bool all_ended() const { return alive_ == 0; }
  bool alive(size_t task) const { return !ended_[task]; }
  // The task whose end made the run fail.
  std::optional<size_t> culprit() const { return culprit_; }
  // Of the run as a whole: the root cause's. Once all have ended.
  int exit_code() const { return exit_code_; }

 private:
  void CountOut(size_t task);
  bool EndsJob(size_t task) const;
  std::string EndFor(size_t task, int code, const std::string& what);
  std::string StopFor(size_t task);
  bool MayReturn(size_t task, int code, absl::Duration now);
  std::string Fail(size_t task, int exit_code, std::string why);

  const std::vector<Member> members_;
  const Rules rules_;
  std::vector<std::deque<absl::Duration>> returns_;  // by task: when it was started again, lately
  std::vector<bool> ended_;
  size_t alive_;
  int workers_alive_ = 0;
  bool has_begun_ = false;
  Phase phase_ = Phase::kRunning;
  std::optional<size_t> culprit_;
  int exit_code_ = 0;
};

}  // namespace lockstep::deploy
