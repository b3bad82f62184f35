#include "worker/strategy/parameter_server/gradient_buffers.h"

#include "common/base/check.h"
#include "common/tensor/indexed_slices.h"

namespace lockstep::worker {
namespace {

// Of the largest gradient; without elements where there is none.
Shape LargestShape(const WholeVariable& variable, int64_t most_rows) {
  if (variable.frozen) return Shape({0});
  return variable.sparse ? WithRows(variable.shape, most_rows) : variable.shape;
}

}  // namespace

GradientBuffers::GradientBuffers(const VariableLayout& layout, std::span<const int64_t> most_rows,
                                 GradientMemory* memory, const TensorMaker& make)
    : layout_(layout) {
  const std::vector<WholeVariable>& variables = layout.variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    const DType dtype = variables[i].dtype;
    const Shape shape = LargestShape(variables[i], most_rows[i]);
    if (variables[i].frozen) {
      memory_.emplace_back();
    } else if (memory != nullptr) {
      memory_.push_back(memory->Take(dtype, shape));
    } else {
      memory_.push_back(make(dtype, shape));
    }
    views_.push_back({dtype, variables[i].shape, memory_.back().data()});
  }
}

uint64_t GradientBuffers::NumBytes(const VariableLayout& layout,
                                   std::span<const int64_t> most_rows) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < layout.variables().size(); ++i) {
    const WholeVariable& variable = layout.variables()[i];
    if (variable.frozen) continue;
    const Shape shape = LargestShape(variable, most_rows[i]);
    bytes += Tensor::RoomFor(static_cast<uint64_t>(shape.num_elements()) * SizeOf(variable.dtype));
  }
  return bytes;
}

void GradientBuffers::BindRowGradients(std::span<const TensorView> values) {
  const std::vector<WholeVariable>& variables = layout_.variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].sparse || variables[i].frozen) continue;
    LOCKSTEP_CHECK(values[i].num_bytes() <= memory_[i].num_bytes());
    views_[i] = {values[i].dtype, values[i].shape, memory_[i].data()};
  }
}

}  // namespace lockstep::worker
