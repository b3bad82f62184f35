// MeanMemory holds the buffers for the means of a primary's dense variables, one per variable. They
// are in memory that a copy on this host reads, as far as it suffices.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "common/shm/arena.h"
#include "common/tensor/tensor.h"

namespace lockstep::ps {

// Not thread-safe. Tensors keep their addresses until the MeanMemory is destroyed.
class MeanMemory {
 public:
  // `shared` may be null, and of any size.
  explicit MeanMemory(std::shared_ptr<shm::Segment> shared);

  // Returns the variable's buffer, the same at each call.
  MutableTensorView MeanOf(VariableId variable, DType dtype, const Shape& shape);

 private:
  std::optional<shm::Arena> shared_;
  std::map<VariableId, Tensor> means_;
};

}  // namespace lockstep::ps
