// CopyTarget is the ps that keeps a copy of the shard (ps/copy). A primary sends the mean gradients
// of its steps to it, and publishes the result of a step only when the copy has them. A new copy,
// made while the job trains, also gets the state: a part of it at the end of each step.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/callback.h"
#include "common/base/ids.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/tensor.h"
#include "ps/shard/calls.h"
#include "ps/shard/state_tensor.h"

namespace lockstep::ps {

// The mean gradient of one variable.
struct MeanGradient {
  VariableId variable;
  Shape shape;        // the variable's
  TensorView values;  // null for a sparse variable: `rows` has them
  std::shared_ptr<const IndexedSlices> rows = {};
  std::vector<CountedPush> mean_of = {};
};

// Mean gradients of variables whose next values are published together.
struct StepMeans {
  GlobalStep step;  // that they close
  float learning_rate = 0;
  std::vector<MeanGradient> gradients;
  uint64_t stale = 0;  // gradients that the primary has dropped in all its steps
};

// The beginning of the state that a new copy gets.
struct StateBegin {
  GlobalStep step;             // the first that the primary has not closed
  std::vector<float> scalars;  // of the optimizers, in the order of the losses
  std::vector<StateTensor> tensors;
  uint64_t accepted = 0;  // gradients that the primary has counted in the steps before
  uint64_t stale = 0;     // and dropped
};

// Thread-safe. Each callback runs once, on a thread of the target or before the call returns.
class CopyTarget {
 public:
  virtual ~CopyTarget() = default;

  // Returns memory for the mean of a dense variable, valid while the target exists. The caller owns
  // it until the callback of the Send that names it.
  virtual MutableTensorView MeanOf(VariableId variable, DType dtype, const Shape& shape) = 0;
  // `taken` gets OK when the copy has taken all of them, or when the shard no longer waits for the
  // copy. On an error the result of the step must never be published.
  virtual void Send(StepMeans means, StatusCallback taken) = 0;
  // True if the target has all it needs for a step. For a new copy this is made meanwhile.
  virtual bool IsReady() const = 0;
  // Called once for a new copy, when the target is ready. Means passed to Send before that are sent
  // when the copy has begun.
  virtual void BeginState(StateBegin begin) = 0;
  // True if a new copy does not have all of the state yet, and End was not called.
  virtual bool LacksState() const = 0;
  // Sends a part of the state before `step`, when the copy has taken all means of the steps before.
  // `tensors` are the bytes of each, in the order of BeginState. They do not change until `taken`
  // is called, as in Send.
  virtual void SendState(GlobalStep step, std::vector<std::span<const std::byte>> tensors,
                         StatusCallback taken) = 0;
  // Answers waiting and later calls with `end`. OK: the shard continues alone.
  virtual void End(const absl::Status& end) = 0;
  // The time since the copy's last answer while one is awaited; zero: none is awaited.
  virtual absl::Duration Silence() const = 0;
};

struct CopyTargetOptions {
  std::string address;   // "host:port" of the copy
  std::string host;      // which ps keeps it: "ps 1"
  absl::Duration lease;  // a longer silence of that ps is logged; 0: no logging
  ShardIndex shard;
  WorkerIdentity identity;  // of the primary at its copy
  // Bytes of the means of all dense variables, each of Tensor::RoomFor. A copy on this host reads
  // them in place. 0: the job shares no memory.
  uint64_t shared_bytes = 0;
  bool checksums = false;  // of messages to the copy and its replies: transport.checksums
  bool is_new = false;     // made while the job trains: it lacks the state
  // Called once when the copy refuses the means: it now serves the workers in place of this shard.
  std::function<void(const absl::Status&)> refused;
  // Called when a copy that lacks state refuses it: the shard continues alone.
  std::function<void(const absl::Status&)> lost;
};

using MakeCopyTarget = std::function<std::shared_ptr<CopyTarget>(CopyTargetOptions)>;

}  // namespace lockstep::ps
