// The loop of one replica's training: a batch, the values of its step, forward and backward over
// the towers, the gradients to the strategy, the next step (docs/architecture.md, "Life of a
// gradient").
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/replicas/replica_view.h"
#include "worker/cache/variable_layout.h"
#include "worker/data/pipeline.h"
#include "worker/step/example_log.h"
#include "worker/step/progress.h"
#include "worker/step/timeline.h"
#include "worker/strategy/update_strategy.h"
#include "worker/tower/batch_rows.h"
#include "worker/tower/training_towers.h"

namespace lockstep::worker {

struct StepRunnerOptions {
  GlobalStep first_step;  // whose data is read first
  // The job has no step from this one on, and perhaps no data: a replica that comes to it, because
  // it starts when all steps are done, waits to be told so. Not of an asynchronous job, whose
  // replicas count their own steps.
  int64_t max_steps = std::numeric_limits<int64_t>::max();
  uint64_t random_seed = 0;  // of this replica: for dropout
  // What the replica takes of the first step, of a job whose workers come and go; its random seed
  // follows then from its place and `job_seed`.
  std::optional<ReplicaShare> share = {};
  uint64_t job_seed = 0;
  // Once this is true, such a replica that has had a share ends with CANCELLED at the first step of
  // which it has none; may be null. Outlives the runner.
  const std::atomic<bool>* departs = nullptr;
  Timeline* timeline = nullptr;  // may be null; outlives the runner
  // May be null; outlives the runner.
  ExampleLog* example_log = nullptr;
  int first_tower = 0;  // of the worker's: for the log
  const Clock* clock = Clock::Real();
};

// Run is called once; it keeps its thread until the end.
class StepRunner {
 public:
  // What is passed outlives the runner. `rows` is for the runner alone. `towers`: by loss, as the
  // layout counts them.
  StepRunner(const StepRunnerOptions& options, const VariableLayout& layout,
             UpdateStrategy* strategy, std::vector<TrainingTowers*> towers, Pipeline* data,
             BatchRows* rows, Progress* progress);

  // Trains until the strategy says that the job is done (OK), or until the first error, which
  // cancels the strategy. CANCELLED: somebody else cancelled it.
  absl::Status Run();

 private:
  absl::Status RunSteps();
  absl::StatusOr<StepOutcome> RunStep(GlobalStep step);
  // Another replicas' step, or none of the job: waits for the next token.
  absl::StatusOr<StepOutcome> SkipStep(GlobalStep step);
  absl::Status UseShare(const ReplicaShare& share);
  absl::StatusOr<StepOutcome> EndStep(const std::optional<StepInput>& predicted);
  // Reads the batches of a step, unless they were read last, and collects their rows.
  absl::Status Read(GlobalStep step);
  // What the strategy may fetch now. Without rows where the data is not ready: this step's gradient
  // does not wait for it.
  std::optional<StepInput> PredictNext();
  absl::Status Train(GlobalStep step, const StepValues& values);
  // The gradients of these variables are final.
  void OnGradients(std::span<const int> variables);

  const StepRunnerOptions options_;
  const VariableLayout& layout_;
  UpdateStrategy* const strategy_;
  const std::vector<TrainingTowers*> towers_;
  Pipeline* const data_;
  BatchRows* const rows_;
  Progress* const progress_;
  // What was read last, and of which step.
  const std::vector<Batch>* batches_ = nullptr;
  GlobalStep batches_of_;
  std::optional<ReplicaShare> share_;  // as told last
  bool has_taken_part_ = false;        // in a step
  uint64_t random_seed_;
};

}  // namespace lockstep::worker
