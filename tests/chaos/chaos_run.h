// Injects the faults of a schedule into a job, one round after another, and writes down what they
// cost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/chaos_job.h"
#include "tests/chaos/detection.h"
#include "tests/chaos/ongoing_fault.h"
#include "tests/chaos/report.h"
#include "tests/chaos/schedule.h"
#include "tests/chaos/usage.h"

namespace lockstep::test {

// From one thread.
class ChaosRun {
 public:
  // All of them outlive it. `say`: gets a line for each round.
  ChaosRun(ChaosJob* job, Schedule* schedule, ChaosReport* report,
           std::function<void(const std::string&)> say);

  // Whether the job trains and has a checkpoint, before the first fault.
  bool WaitForStart();
  // From now on `usage`, which outlives it, gets what each task takes, every second.
  void WatchUsage(UsageWatch* usage);
  // One round, until the job trains again. False: it does not, or something is wrong.
  bool RunRound();
  // Tends the job for so long. False: something is wrong.
  bool TendFor(absl::Duration time);
  // After the last round: until a standby that has let others go first has asked again. One that
  // has not, finds no ps after the end of the job and does not hear of it.
  void AwaitStandby();

 private:
  struct Injected {
    FaultOutcome outcome;
    FaultTasks tasks;
    Detection detection;
    absl::Duration at;
    std::unique_ptr<OngoingFault> fault;
    bool is_healed = false;
  };
  // False: something is wrong.
  bool Tend();
  void ReadUsage();
  // Tends the job until `done`, or for so long: false. It begins anew when `parts` changes.
  bool TendUntil(
      const std::function<bool()>& done, absl::Duration patience,
      const std::function<int()>& parts = [] { return 0; });
  Injected Inject(const Fault& fault, const FaultTasks& tasks);
  // Goes on with what is not healed; whether all are.
  bool AdvanceFaults(std::vector<Injected>* round);
  // Whether a save has failed on each disk that is full and is written to, and the chief has said
  // so.
  bool AreFullDisksMet(const std::vector<Injected>& round) const;

  ChaosJob* const job_;
  Schedule* const schedule_;
  ChaosReport* const report_;
  const std::function<void(const std::string&)> say_;
  StepWatch watch_;
  UsageWatch* usage_ = nullptr;
  absl::Duration usage_begin_, next_usage_;
};

}  // namespace lockstep::test
