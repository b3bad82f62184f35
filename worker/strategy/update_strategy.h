// How the gradients of a replica become the values of its next step. Implementations are in folders
// of their own below; docs/architecture.md says how a step runs.
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
  // Whose data the replica reads.
  GlobalStep step;
  // By variable, of sparse ones the rows that this data reads, ascending, each once. Empty as a
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
  // By variable, host memory that receives its gradient: of a sparse one, of the rows in `values`;
  // of a frozen one without data. Constant from AddGradients until the callback of EndStep.
  std::span<const MutableTensorView> gradients = {};
  // Where every tower has variables of its own: by tower, in place of the two above.
  std::span<const TowerMemory> by_tower = {};
};

struct StepOutcome {
  GlobalStep next;        // whose data is to be read
  GlobalStep local_step;  // the version of its values, as far as that is known
  // What this replica takes of `next`, in a job whose workers come and go.
  std::optional<ReplicaShare> share = {};
  bool done = false;  // the job needs no further gradient; `next` means nothing
  // Variables of this step's gradient.
  uint64_t accepted = 0;
  uint64_t stale = 0;
  // When the whole gradient had been judged, on the strategy's clock.
  absl::Duration judged_at = absl::ZeroDuration();
};

// One step at a time: BeginStep, its callback, AddGradients until each variable that gets a
// gradient in the step was named once, EndStep, its callback. All from one thread, or handed from
// one to the next, but for what says otherwise. An error ends training: no further call is made but
// Cancel. Destroyed when no callback is pending.
class UpdateStrategy {
 public:
  virtual ~UpdateStrategy() = default;

  // Provides the values of a step. `input` stays until the callback.
  virtual void BeginStep(const StepInput& input, Callback<StepValues> done) = 0;
  // The gradients of these variables are final, in StepValues::gradients. Does not block.
  virtual void AddGradients(std::span<const int> variables) = 0;
  // Completes the step. `predicted` is that of PredictNext with its rows, where these are known:
  // its values may be fetched at once. Its rows are copied.
  virtual void EndStep(const std::optional<StepInput>& predicted, Callback<StepOutcome> done) = 0;

  // Between BeginStep and EndStep: the step that follows for certain, if the strategy knows.
  virtual std::optional<GlobalStep> PredictNext() const = 0;

  // What the pending callback waits for, for people; empty: none is pending. Thread-safe.
  virtual std::string DescribeWait() const = 0;
  // Ends pending callbacks, and those of later calls, with CANCELLED. Thread-safe.
  virtual void Cancel() = 0;
  // As Cancel, unless the ps may have a part of a gradient, while the rest is still to come: from
  // the callback of BeginStep until each of them has judged its part, or holds it until the step
  // is over. That gradient goes on and no later one begins. Returns whether training is cancelled;
  // if not, the caller asks again. Thread-safe.
  virtual bool CancelAfterGradient() {
    Cancel();
    return true;
  }
};

}  // namespace lockstep::worker
