#include "ps/copy/mean_memory.h"

#include <utility>

namespace lockstep::ps {

MeanMemory::MeanMemory(std::shared_ptr<shm::Segment> shared) {
  if (shared != nullptr) shared_.emplace(std::move(shared));
}

MutableTensorView MeanMemory::MeanOf(VariableId variable, DType dtype, const Shape& shape) {
  if (const auto found = means_.find(variable); found != means_.end()) return found->second.view();
  std::optional<Tensor> mean;
  if (shared_.has_value()) mean = shared_->Take(dtype, shape);
  if (!mean.has_value()) mean.emplace(dtype, shape);
  return means_.emplace(variable, *std::move(mean)).first->second.view();
}

}  // namespace lockstep::ps
