// UpdateStrategy turns the gradients of a replica into the values of its next step. Implementations
// are in subfolders; docs/architecture.md says how a step runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "common/base/callback.h"
#include "common/base/ids.h"
#include "common/replicas/replica_view.h"
#include "common/tensor/tensor.h"
#include "worker/tower/tower_memory.h"
#include "worker/tower/variable_values.h"

namespace lockstep::worker {

struct StepInput {
  // The step whose data the replica reads.
  GlobalStep step;
  // By variable: of a sparse one, the rows that this data reads, ascending, each once. Empty as a
  // whole: not known yet.
  std::span<const std::span<const int64_t>> rows = {};
  // The replica has no share of the step: no values are wanted, and BeginStep says is_superseded.
  bool is_skipped = false;
};

struct StepValues {
  // The version of the values; of an asynchronous job that of the step shard.
  GlobalStep version;
  // The step was committed without this replica: no gradient is wanted, EndStep comes at once.
  bool is_superseded = false;
  // Valid until EndStep.
  VariableValues values = {};
  // By variable: host memory that receives its gradient. That of a sparse one has the rows in
  // `values`; that of a frozen one has no data. Constant from AddGradients until the callback of
  // EndStep.
  std::span<const MutableTensorView> gradients = {};
  // By tower, in place of the two above, if every tower has its own variables.
  std::span<const TowerMemory> by_tower = {};
};

struct StepOutcome {
  GlobalStep next;        // the step whose data is read next
  GlobalStep local_step;  // the version of its values, as far as that is known
  // The share of this replica in `next`, in an elastic job.
  std::optional<ReplicaShare> share = {};
  bool done = false;  // the job needs no further gradient; `next` means nothing
  // Variables of this step's gradient.
  uint64_t accepted = 0;
  uint64_t stale = 0;
  // Time at which the whole gradient had been judged, on the strategy's clock.
  absl::Duration judged_at = absl::ZeroDuration();
};

// Runs one step at a time: BeginStep, its callback, AddGradients until each variable that gets a
// gradient in the step was named once, EndStep, its callback. Used by one thread at a time, except
// for thread-safe methods. An error ends training: then only Cancel is called. Destroyed when no
// callback is pending.
class UpdateStrategy {
 public:
  virtual ~UpdateStrategy() = default;

  // Provides the values of a step. `input` stays until the callback.
  virtual void BeginStep(const StepInput& input, Callback<StepValues> done) = 0;
  // The gradients of these variables are final, in StepValues::gradients. Does not block.
  virtual void AddGradients(std::span<const int> variables) = 0;
  // Completes the step. `predicted` is the step of PredictNext, with its rows if they are known.
  // Its values may be fetched at once. Its rows are copied.
  virtual void EndStep(const std::optional<StepInput>& predicted, Callback<StepOutcome> done) = 0;

  // Between BeginStep and EndStep: returns the step that certainly follows, if it is known.
  virtual std::optional<GlobalStep> PredictNext() const = 0;

  // Describes for people what the pending callback waits for. Empty: none is pending. Thread-safe.
  virtual std::string DescribeWait() const = 0;
  // Ends pending callbacks, and those of later calls, with CANCELLED. Thread-safe.
  virtual void Cancel() = 0;
  // As Cancel, unless the ps may have a part of a gradient while the rest is still to come. This
  // lasts from the callback of BeginStep until each ps has judged its part, or holds it until the
  // step is over. Then this gradient goes on and no later one begins. Returns whether training is
  // cancelled; if not, the caller calls again. Thread-safe.
  virtual bool CancelAfterGradient() {
    Cancel();
    return true;
  }
};

}  // namespace lockstep::worker
