// ReplicaState is the state of a replica at one version: values, slots, the optimizer's scalars.
// Members of a group read it from one another as bytes (proto/peer.proto).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "common/tensor/tensor.h"
#include "common/tensor/tensor_maker.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

struct ReplicaState {
  GlobalStep version;
  std::vector<Tensor> values;              // by variable of the layout
  std::vector<std::vector<Tensor>> slots;  // likewise; in the order of the variable's rule
  std::vector<float> scalars;              // in the order of the rule
};

// Makes a state with tensors of any contents, and without scalars. `make_tensor` makes the values
// of variables that are not tables; towers read these values in place.
ReplicaState UninitializedState(const VariableLayout& layout, const OptimizerRules& rules,
                                const TensorMaker& make_tensor = OnHeap);

// Returns the tensors of a state in the order of its bytes.
std::vector<MutableTensorView> TensorsOf(ReplicaState* state);

// Returns the bytes of all tensors together. Offsets below count through the tensors in order.
uint64_t NumBytes(std::span<const TensorView> tensors);
// Returns bytes [offset, offset + size), cut at the end.
std::string ReadBytes(std::span<const TensorView> tensors, uint64_t offset, uint64_t size);
// Returns false and writes nothing if `bytes` reach beyond the end.
bool WriteBytes(std::span<const MutableTensorView> tensors, uint64_t offset,
                absl::string_view bytes);

}  // namespace lockstep::worker
