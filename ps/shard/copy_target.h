// Where a primary sends the mean gradients of its steps: the ps that keeps a copy of the shard
// (ps/copy). What a step made is shown to nobody before the copy has them. A new copy, made while
// the job trains, gets the state, too: a part of it at the end of each step.
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

// Of one variable.
struct MeanGradient {
  VariableId variable;
  Shape shape;        // the variable's
  TensorView values;  // of a sparse variable null: `rows` has them
  std::shared_ptr<const IndexedSlices> rows = {};
  std::vector<CountedPush> mean_of = {};
};

// Of variables whose next values are published together.
struct StepMeans {
  GlobalStep step;  // that they close
  float learning_rate = 0;
  std::vector<MeanGradient> gradients;
  uint64_t stale = 0;  // gradients that the primary has dropped, of all its steps
};

// Where the state begins that a new copy gets.
struct StateBegin {
  GlobalStep step;             // the first that the primary has not closed
  std::vector<float> scalars;  // of the optimizers, in the order of the losses
  std::vector<StateTensor> tensors;
  uint64_t accepted = 0;  // gradients that the primary has counted in the steps before
  uint64_t stale = 0;     // and dropped
};

// Thread-safe. Callbacks come on a thread of the target's or before the call returns, once each.
class CopyTarget {
 public:
  virtual ~CopyTarget() = default;

  // Memory for the mean of a dense variable, for as long as the target exists. One who asks for it
  // owns it until the callback of the Send that names it.
  virtual MutableTensorView MeanOf(VariableId variable, DType dtype, const Shape& shape) = 0;
  // `taken` is told OK when the copy has taken all of them, or when nobody waits for it any more.
  // An error: what the step made is never to be shown.
  virtual void Send(StepMeans means, StatusCallback taken) = 0;
  // What the target needs for a step is there. Of a new copy it is made meanwhile.
  virtual bool IsReady() const = 0;
  // Of a new copy, once, when the target is ready. Means of which Send is told before are sent when
  // the copy has begun.
  virtual void BeginState(StateBegin begin) = 0;
  // A new copy has not got all of the state yet, and nobody has called End.
  virtual bool LacksState() const = 0;
  // Sends a part of the state before `step`, when the copy has taken all means of the steps before.
  // `tensors` are the bytes of each, in the order of BeginState: they stay as they are until
  // `taken` is told, as of Send.
  virtual void SendState(GlobalStep step, std::vector<std::span<const std::byte>> tensors,
                         StatusCallback taken) = 0;
  // Tells `end` to those that wait, and to later calls. OK: the shard goes on alone.
  virtual void End(const absl::Status& end) = 0;
  // For how long the copy has not answered while something is owed to it; zero: nothing is.
  virtual absl::Duration Silence() const = 0;
};

struct CopyTargetOptions {
  std::string address;   // "host:port" of the copy
  std::string host;      // which ps keeps it: "ps 1"
  absl::Duration lease;  // a longer silence of that ps is logged; 0: none is
  ShardIndex shard;
  WorkerIdentity identity;  // of the primary at its copy
  // Of the means of all dense variables, each of Tensor::RoomFor: what a copy on this host reads in
  // place. 0: the job shares no memory.
  uint64_t shared_bytes = 0;
  bool checksums = false;  // of messages to the copy and its replies: transport.checksums
  bool is_new = false;     // made while the job trains: it lacks the state
  // The copy refuses the means: it serves the workers now, in place of this shard. Once.
  std::function<void(const absl::Status&)> refused;
  // A copy that lacks state refuses it: the shard goes on alone.
  std::function<void(const absl::Status&)> lost;
};

using MakeCopyTarget = std::function<std::shared_ptr<CopyTarget>(CopyTargetOptions)>;

}  // namespace lockstep::ps
