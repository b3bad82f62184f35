// The arithmetic of one layer on one device, forward and backward.
#pragma once

#include <cstdint>
#include <span>

#include "common/tensor/tensor.h"

namespace lockstep::worker {

enum class Mode { kTraining, kInference };

// What every kind of op is told when it is made; each kind adds its own in its header.
struct OpOptions {
  int64_t batch = 1;           // examples in each call; another size needs another op
  bool training = true;        // false: Backward and Mode::kTraining are never asked for
  bool input_gradient = true;  // false: nobody needs the gradients of the inputs
  // False: the variables are frozen. Backward leaves their gradients alone, and statistics are used
  // as they are.
  bool variable_gradients = true;
};

// Made by an OpFactory for fixed shapes, with all memory that it needs beside its operands: a call
// allocates nothing. Tensors are float32, row-major, batch first, images height, width, channels.
// Not thread-safe; the calling thread has made the op's device current.
class Op {
 public:
  virtual ~Op() = default;

  struct ForwardArgs {
    Mode mode = Mode::kTraining;
    uint64_t random_key = 0;                // of this step; for dropout
    std::span<const TensorView> inputs;     // in the order of the layer's inputs
    std::span<const TensorView> variables;  // in the order of the layer's comment in model.proto
    MutableTensorView output;
    // Of each variable that is a table: which of its rows it holds, ascending, each once. Empty as
    // a whole: tables are whole. Need not outlive the call.
    std::span<const std::span<const int64_t>> rows = {};
  };
  virtual void Forward(const ForwardArgs& args) = 0;

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
  virtual void Backward(const BackwardArgs& args) = 0;
};

}  // namespace lockstep::worker
