// The job of a chaos run: 2 ps, 2 workers that a step needs both, or 3 of which it needs 2, a chief
// and a standby, in real processes that a network of faults joins.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/status_reader.h"
#include "common/rpc/credentials.h"
#include "tests/chaos/chaos_network.h"
#include "tests/chaos/chaos_options.h"
#include "tests/chaos/chaos_task.h"
#include "tests/chaos/fault.h"
#include "tests/chaos/ongoing_fault.h"
#include "tests/chaos/step_watch.h"
#include "tests/chaos/task_id.h"
#include "tests/integration/cluster.h"

namespace lockstep::test {

// From one thread.
class ChaosJob {
 public:
  static constexpr int kPs = 2;
  static constexpr int kChiefs = 2;
  static constexpr absl::Duration kLease = absl::Seconds(2);

  // Starts everybody.
  explicit ChaosJob(const ChaosOptions& options);

  // The job outlives it.
  std::unique_ptr<OngoingFault> Inject(const Fault& fault, const FaultTasks& tasks);
  // Whom `fault` hits now; nullopt while no chief commands, if it takes one to know.
  std::optional<FaultTasks> TasksOf(const Fault& fault) const;

  // Starts again what has ended, asks the ps for their steps, and returns what is wrong.
  std::vector<std::string> Tend(StepWatch* watch);
  bool all_up();
  std::vector<std::unique_ptr<ChaosTask>>& tasks() { return tasks_; }
  bool has_checkpoint() const;
  // Of a ps that is killed: with copies the shard is saved by the ps that serves it.
  bool successor_saves() const { return !has_copies_; }

  // Has the chief save and end the job; returns what is wrong.
  std::vector<std::string> Finish();
  // Of the newest checkpoint.
  absl::StatusOr<int64_t> SavedStep() const;
  std::string SavedFolder(int64_t step) const;
  std::string Logs() const;
  // Steps that the furthest ps had closed when Tend asked the last time.
  int64_t steps() const { return steps_; }

  // The job that nothing disturbs, of so many steps: the folder of its last checkpoint, which is
  // this cluster's.
  static absl::StatusOr<std::string> RunCalm(Cluster* cluster, const ChaosOptions& options,
                                             int64_t steps);

 private:
  static JobText Text(const ChaosOptions& options, int64_t steps);
  void AddWorker(int index, absl::Duration sleep);
  void AddPs(int index);
  void AddChief(int index, const std::string& job);
  // `command` is without what the network adds.
  void AddTask(const TaskId& id, std::vector<std::string> command, std::set<int> tolerated = {});
  std::optional<TaskId> TaskOf(FaultTarget target, int index) const;
  // Of the chiefs that answer, the only one that does not stand by.
  std::optional<int> Commander() const;
  ChaosTask& task(const TaskId& id) const;
  // A kill in a save waits for the first save of these.
  std::vector<ChaosTask*> SaversOf(const Fault& fault, ChaosTask* hit) const;
  // Those that a fault of processes ends.
  std::vector<ChaosTask*> EndedBy(const Fault& fault, const FaultTasks& hit) const;

  const int num_workers_;
  const bool has_copies_;
  Cluster cluster_;
  std::string token_path_;                               // empty: the job has no token
  std::shared_ptr<const rpc::Credentials> credentials_;  // null: the same
  const std::unique_ptr<ChaosNetwork> network_;
  std::vector<std::unique_ptr<ChaosTask>> tasks_;  // ps, workers, chiefs
  std::deque<StatusReader> readers_;               // of the ps
  int64_t steps_ = 0;
};

}  // namespace lockstep::test
