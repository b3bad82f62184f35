// The job of a chaos run: 2 ps, 2 workers that a step needs both, a chief and a standby, in real
// processes on loopback. Ps and chiefs are reached through fault proxies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/cli/ports.h"
#include "tests/chaos/chaos_task.h"
#include "tests/chaos/fault.h"
#include "tests/chaos/step_watch.h"
#include "tests/integration/cluster.h"

namespace lockstep::test {

// From one thread.
class ChaosJob {
 public:
  static constexpr int kPs = 2;
  static constexpr int kWorkers = 2;
  static constexpr int kChiefs = 2;
  static constexpr absl::Duration kLease = absl::Seconds(2);

  // Starts everybody. `options`: further fields of JobDef.
  explicit ChaosJob(const std::string& options);

  void Inject(const Fault& fault, ChaosTask* task);
  // Ends what lasts of it.
  void Heal(const Fault& fault, ChaosTask* task);
  // The task that `fault` hits now; null while no chief commands.
  ChaosTask* TargetOf(const Fault& fault);

  // Starts again what has ended, asks the ps for their steps, and returns what is wrong.
  std::vector<std::string> Tend(StepWatch* watch);
  bool all_up();
  std::vector<std::unique_ptr<ChaosTask>>& tasks() { return tasks_; }
  bool has_checkpoint() const;

  // Has the chief save and end the job; returns what is wrong.
  std::vector<std::string> Finish();
  // Of the newest checkpoint.
  absl::StatusOr<int64_t> SavedStep() const;
  std::string SavedFolder(int64_t step) const;
  std::string Logs() const;

  // The job that nothing disturbs, of so many steps: the folder of its last checkpoint, which is
  // this cluster's.
  static absl::StatusOr<std::string> RunCalm(Cluster* cluster, const std::string& options,
                                             int64_t steps);

 private:
  static JobText Text(const std::string& options, int64_t steps);
  void AddWorker(int index);
  void AddPs(int index);
  void AddChief(int index, const std::string& job);
  std::optional<int> Commander() const;
  ChaosTask& ps(int index) const { return *tasks_[index]; }
  ChaosTask& worker(int index) const { return *tasks_[kPs + index]; }
  ChaosTask& chief(int index) const { return *tasks_[kPs + kWorkers + index]; }

  Cluster cluster_;
  const deploy::PortReservation real_;             // where ps and then chiefs listen
  std::vector<std::unique_ptr<ChaosTask>> tasks_;  // ps, workers, chiefs
};

}  // namespace lockstep::test
