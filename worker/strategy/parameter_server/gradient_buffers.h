// Host memory for the gradients of one replica.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/client/gradient_memory.h"
#include "common/tensor/tensor.h"
#include "common/tensor/tensor_maker.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

// Thread-compatible. Counted as the layout's variables. A sparse variable has room for its most
// rows, a frozen one none. Kept from step to step, so that a gradient can be sent again.
class GradientBuffers {
 public:
  // `most_rows`: by variable, of how many rows a step can have a gradient. `memory` may be null:
  // `make` makes the gradients. The layout outlives this.
  GradientBuffers(const VariableLayout& layout, std::span<const int64_t> most_rows,
                  GradientMemory* memory, const TensorMaker& make = OnHeap);

  // What `memory` should have.
  static uint64_t NumBytes(const VariableLayout& layout, std::span<const int64_t> most_rows);

  // Gives the gradients of sparse variables the shapes of their values.
  void BindRowGradients(std::span<const TensorView> values);

  std::span<const MutableTensorView> views() const { return views_; }

 private:
  const VariableLayout& layout_;
  std::vector<Tensor> memory_;
  std::vector<MutableTensorView> views_;
};

}  // namespace lockstep::worker
