// What a replica has at one version: values, slots, the optimizer's scalars. The same as bytes, as
// members of a group read it from one another (proto/peer.proto).
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
  std::vector<std::vector<Tensor>> slots;  // the same; in the order of the variable's rule
  std::vector<float> scalars;              // in the order of the rule
};

// With tensors of any contents, and without scalars. `make_tensor` makes the values of variables
// that are no tables, which towers read where they are.
ReplicaState UninitializedState(const VariableLayout& layout, const OptimizerRules& rules,
                                const TensorMaker& make_tensor = OnHeap);

// The tensors of a state in the order of its bytes.
std::vector<MutableTensorView> TensorsOf(ReplicaState* state);

// Tensors one after the other: how many bytes they are.
uint64_t NumBytes(std::span<const TensorView> tensors);
// Bytes [offset, offset + size), without what is beyond the end.
std::string ReadBytes(std::span<const TensorView> tensors, uint64_t offset, uint64_t size);
// False, and nothing is written: they reach beyond the end.
bool WriteBytes(std::span<const MutableTensorView> tensors, uint64_t offset,
                absl::string_view bytes);

}  // namespace lockstep::worker
