// The arithmetic of one layer on one device, forward and backward.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/tensor/tensor.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

class Op;

enum class Mode { kTraining, kInference };

// What every kind of op is told when it is made; each kind adds its own in its header, and kKind,
// its name in errors.
struct OpOptions {
  using Made = Op;

  int64_t batch = 1;           // examples in each call; another size needs another op
  bool training = true;        // false: Backward and Mode::kTraining are never asked for
  bool input_gradient = true;  // false: nobody needs the gradients of the inputs
  // False: nobody needs the gradients of the variables, nor new values of statistics. Backward
  // leaves them alone.
  bool variable_gradients = true;
  // Of an op whose variable is a table: how many of its rows ForwardArgs::rows has at most. 0: all.
  int64_t most_rows = 0;
  DType type = DType::kFloat32;  // of inputs, output and their gradients: that, or bfloat16
};

// Which rows of a table a variable holds. In memory of the device.
struct TableRows {
  const int64_t* count = nullptr;
  const int64_t* rows = nullptr;  // ascending, each once
};

// Made by an OpTable for fixed shapes, with all memory that it needs beside its operands: a call
// allocates nothing. Tensors are in memory of the device, row-major, batch first, images height,
// width, channels. Variables and their gradients are float32.
//
// Calls enqueue the work on a stream of the op's device. Their arguments and all that these name
// stay as they are until the stream has passed it. A stream may capture the work of calls in
// training mode, and launch it for later steps in place of the same calls: what differs between
// steps is read from memory of the device. An error is one of enqueuing; those of the work are the
// device's. Not thread-safe; the ops of one context use one stream.
class Op {
 public:
  virtual ~Op() = default;

  struct ForwardArgs {
    Mode mode = Mode::kTraining;
    // Of this step, in memory of the device. Null for ops that draw no random numbers.
    const uint64_t* random_key = nullptr;
    std::span<const TensorView> inputs;     // in the order of the layer's inputs
    std::span<const TensorView> variables;  // in the order of the layer's comment in model.proto
    MutableTensorView output;
    // By variable; of one that is no table nothing is read. Empty as a whole: tables are whole.
    std::span<const TableRows> rows = {};
  };
  virtual absl::Status Forward(const ForwardArgs& args, Stream* stream) = 0;

  // `inputs`, `variables` and `output` are as they were in the last Forward, which was in training
  // mode. What is asked for is overwritten, not added to.
  struct BackwardArgs {
    std::span<const TensorView> inputs;
    std::span<const TensorView> variables;
    TensorView output;
    MutableTensorView output_gradient;  // the op may use it up: contents undefined afterwards
    std::span<const MutableTensorView> input_gradients;     // data null: not wanted
    std::span<const MutableTensorView> variable_gradients;  // of a statistic: its new value
  };
  virtual absl::Status Backward(const BackwardArgs& args, Stream* stream) = 0;
};

}  // namespace lockstep::worker
