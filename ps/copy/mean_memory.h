// Where a primary writes the means of its dense variables: one place for each variable, in memory
// that a copy on this host reads, as far as there is some.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "common/shm/arena.h"
#include "common/tensor/tensor.h"

namespace lockstep::ps {

// Not thread-safe. Tensors stay where they are for as long as the memory exists.
class MeanMemory {
 public:
  // `shared` may be null, and of any size.
  explicit MeanMemory(std::shared_ptr<shm::Segment> shared);

  // The variable's, the same for each call.
  MutableTensorView MeanOf(VariableId variable, DType dtype, const Shape& shape);

 private:
  std::optional<shm::Arena> shared_;
  std::map<VariableId, Tensor> means_;
};

}  // namespace lockstep::ps
