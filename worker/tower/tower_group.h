// The towers of one worker: each takes its batch at the same time, and the mean over them leaves
// the worker as if one tower had taken all.
#pragma once

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/model/graph.h"
#include "worker/tower/tower.h"

namespace lockstep::worker {

struct TowerGroupOptions {
  int towers = 1;
  int64_t batch_per_tower = 0;
  int threads_per_tower = 1;
};

// Not thread-safe: one call at a time. A single tower computes on the caller's thread and into the
// caller's gradients; several have a thread each and gradients of their own.
class TowerGroup {
 public:
  // Errors as Tower::Create.
  static absl::StatusOr<std::unique_ptr<TowerGroup>> Create(const ModelGraph& graph,
                                                            const TowerGroupOptions& options);
  ~TowerGroup();

  int size() const { return static_cast<int>(towers_.size()); }

  // As Tower::Train, with batches[t] for tower t, all of one size; `variables` have the rows of all
  // of them. `gradients` receive the mean over the towers, summed in their order; `ready` is called
  // on the caller's thread.
  absl::StatusOr<float> Train(std::span<const Batch> batches, const VariableValues& variables,
                              std::span<const MutableTensorView> gradients, uint64_t random_key,
                              const Tower::GradientReady& ready);

 private:
  // The arguments of a Train in progress, for the towers' threads.
  struct Step {
    std::span<const Batch> batches;
    VariableValues variables;
    uint64_t random_key = 0;
  };

  TowerGroup(std::vector<std::unique_ptr<Tower>> towers, const ModelGraph& graph);
  void Work(int tower);
  // Gives the towers gradients of these shapes.
  void FitGradients(std::span<const MutableTensorView> wanted);
  // Waits until every tower has announced this many variables.
  void WaitForVariables(int count);

  const std::vector<std::unique_ptr<Tower>> towers_;
  std::vector<bool> frozen_;  // by variable
  // By tower and variable; written by the tower's thread, read by the caller's once finished_ says
  // that a variable is complete. A sparse one grows to the most rows that a step has had.
  std::vector<std::vector<Tensor>> memory_;
  std::vector<std::vector<MutableTensorView>> gradients_;  // in memory_

  absl::Mutex mutex_;
  int64_t steps_started_ ABSL_GUARDED_BY(mutex_) = 0;
  Step step_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> finished_ ABSL_GUARDED_BY(mutex_);  // variables of this step, by tower
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: use all above
};

}  // namespace lockstep::worker
