// Runs the tasks of a local cluster to their end, and leaves none of them behind.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/fs/file_descriptor.h"
#include "deploy/cli/console.h"
#include "deploy/cli/local_cluster.h"
#include "deploy/cli/run_outcome.h"

namespace lockstep::deploy {

// How long those who were asked to end have for that before they are killed.
struct StopGraces {
  absl::Duration stop = absl::Seconds(5);
  // Where a chief is among them, which saves the model (its --drain) and tells the others.
  absl::Duration save = absl::Seconds(30);
};

// From the main thread only.
class Supervisor {
 public:
  // Keeps SIGINT, SIGTERM, SIGHUP and SIGCHLD for Run while it exists. Outside they end the
  // launcher. Threads that are started meanwhile never get them.
  class SignalBlock {
   public:
    SignalBlock();
    SignalBlock(const SignalBlock&) = delete;
    SignalBlock& operator=(const SignalBlock&) = delete;
    ~SignalBlock();

   private:
    sigset_t before_;
  };

  // Within a SignalBlock. `console` outlives the supervisor.
  Supervisor(std::vector<Task> tasks, const RunOutcome::Rules& rules, Console* console,
             const StopGraces& graces = {});
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  // Kills what is left.
  ~Supervisor();

  // Starts all tasks; an error means that none is left running.
  absl::Status StartAll();

  // Returns the run's exit code once every task has ended. One that ends for a reason which a
  // successor need not find again is started again: at once after a signal, after kReturnPause
  // when it has given up by itself. `tick` is called a few times a second,
  // as long as nothing went wrong and nobody asked to stop. `has_begun` tells whether the job has
  // begun (Task::repeats_start).
  // A first SIGINT, SIGTERM or SIGHUP asks the chiefs to save and to end the job, then what is left
  // to end, and kills what takes longer than StopGraces. A second one kills all at once, unless it
  // comes within kRepeatedSignal. A run that fails asks all to end.
  int Run(const std::function<void()>& tick, const std::function<bool()>& has_begun);

 private:
  bool IsStopping() const;
  void Return(size_t task, bool has_begun);
  // Starts those again whose time has come.
  void CheckReturns(const std::function<bool()>& has_begun);
  void Reap();
  void HandleSignals();
  void AskToStop();
  std::vector<pid_t> PidsOfChiefs() const;  // that run
  void OnChiefEnded(int wait_status, bool was_interrupted);
  void CheckDeadline();
  void SetDeadline(absl::Duration grace);
  void Signal(int signal);
  void ShowLog(const Task& task);

  const std::vector<Task> tasks_;
  Console* const console_;
  const StopGraces graces_;
  FileDescriptor signals_;
  RunOutcome outcome_;
  std::vector<pid_t> pids_;                 // by task; 0: not started or gone
  std::vector<absl::Duration> returns_at_;  // by task, monotonic; infinite: it is not awaited
  bool has_other_chief_ = false;            // a chief has ended because another one commands
  bool asked_to_stop_ = false;
  absl::Duration interrupted_at_;  // monotonic: when the first signal came
  // Monotonic: when patience with the present phase ends.
  absl::Duration deadline_ = absl::InfiniteDuration();
};

}  // namespace lockstep::deploy
