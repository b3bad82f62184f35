#include "worker/strategy/replicated/replica_state.h"

#include <algorithm>
#include <cstring>

namespace lockstep::worker {
namespace {

// Calls copy(bytes, at) for what of [offset, offset + size) lies in each tensor; `at` counts from
// `offset`.
template <typename View, typename F>
void ForRange(std::span<const View> tensors, uint64_t offset, uint64_t size, const F& copy) {
  uint64_t begin = 0;
  for (const View& tensor : tensors) {
    const auto bytes = tensor.bytes();
    const uint64_t from = std::max(begin, offset);
    const uint64_t to = std::min(begin + bytes.size(), offset + size);
    if (from < to) copy(bytes.subspan(from - begin, to - from), from - offset);
    begin += bytes.size();
  }
}

}  // namespace

ReplicaState UninitializedState(const VariableLayout& layout, const OptimizerRules& rules,
                                const TensorMaker& make_tensor) {
  ReplicaState state;
  for (const WholeVariable& variable : layout.variables()) {
    state.values.push_back(variable.sparse ? Tensor(variable.dtype, variable.shape)
                                           : make_tensor(variable.dtype, variable.shape));
    state.slots.emplace_back();
    if (!variable.trainable || variable.frozen) continue;
    for (size_t i = 0; i < rules.of(variable.name).slots().size(); ++i) {
      state.slots.back().emplace_back(variable.dtype, variable.shape);
    }
  }
  return state;
}

std::vector<MutableTensorView> TensorsOf(ReplicaState* state) {
  std::vector<MutableTensorView> tensors;
  for (size_t i = 0; i < state->values.size(); ++i) {
    tensors.push_back(state->values[i].view());
    for (Tensor& slot : state->slots[i]) tensors.push_back(slot.view());
  }
  return tensors;
}

uint64_t NumBytes(std::span<const TensorView> tensors) {
  uint64_t size = 0;
  for (const TensorView& tensor : tensors) size += tensor.bytes().size();
  return size;
}

std::string ReadBytes(std::span<const TensorView> tensors, uint64_t offset, uint64_t size) {
  const uint64_t total = NumBytes(tensors);
  if (offset >= total) return {};
  std::string bytes(std::min(size, total - offset), '\0');
  ForRange(tensors, offset, bytes.size(), [&](std::span<const std::byte> from, uint64_t at) {
    std::memcpy(bytes.data() + at, from.data(), from.size());
  });
  return bytes;
}

bool WriteBytes(std::span<const MutableTensorView> tensors, uint64_t offset,
                absl::string_view bytes) {
  uint64_t total = 0;
  for (const MutableTensorView& tensor : tensors) total += tensor.bytes().size();
  if (offset > total || bytes.size() > total - offset) return false;
  ForRange(tensors, offset, bytes.size(), [&](std::span<std::byte> to, uint64_t at) {
    std::memcpy(to.data(), bytes.data() + at, to.size());
  });
  return true;
}

}  // namespace lockstep::worker
