// Holds an op against its double-precision reference: the output directly, the gradients by central
// differences of the reference.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/reference/array.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/op_factory.h"

namespace lockstep::worker {

// Ops for this many threads, bound to the calling thread.
class TestOps {
 public:
  explicit TestOps(int threads);
  OpFactory* operator->() { return factory_.get(); }

 private:
  CpuDevice device_;
  std::unique_ptr<OpFactory> factory_;
};

// An op with its operands in memory of the right shapes. Results start as NaN, so that what the op
// leaves out shows.
struct OpRun {
  OpRun(const std::vector<reference::Array>& inputs, const std::vector<reference::Array>& variables,
        const std::vector<int64_t>& output_dims);

  reference::Array Forward(Op& op, Mode mode, uint64_t random_key = 0);
  // After Forward. `want_inputs`: whether the gradients of the inputs are asked for.
  void Backward(Op& op, const reference::Array& output_gradient, bool want_inputs = true);

  // Which rows the variables hold, where they are tables in part.
  std::vector<std::span<const int64_t>> rows;
  std::vector<Tensor> inputs;
  std::vector<Tensor> variables;
  Tensor output;
  std::vector<Tensor> input_gradients;
  std::vector<Tensor> variable_gradients;

 private:
  std::vector<TensorView> input_views_;
  std::vector<TensorView> variable_views_;
};

using ReferenceFunction = std::function<reference::Array(
    const std::vector<reference::Array>& inputs, const std::vector<reference::Array>& variables)>;

// CHECKs output and gradients of `op`, made for training; `differentiated`: how many of the
// variables, from the first, have gradients; `of_inputs`: whether the inputs have.
void CheckOp(Op& op, std::vector<reference::Array> inputs, std::vector<reference::Array> variables,
             size_t differentiated, const ReferenceFunction& reference, bool of_inputs = true);

}  // namespace lockstep::worker
