#include "chief/checkpoint/restorable.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor_proto/convert.h"

namespace lockstep::chief {
namespace {

constexpr char kRemedy[] =
    ". Remedy: use the model and the optimizer that the checkpoint was made with, or start without "
    "--restore";

std::string Show(DType dtype, const Shape& shape) {
  return absl::StrCat(Name(dtype), shape.ToString());
}

}  // namespace

absl::Status CheckRestorable(const Manifest& manifest, const Placement& placement,
                             absl::string_view optimizer) {
  if (manifest.optimizer != optimizer) {
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint was made with the optimizer ",
                                                   manifest.optimizer, ", the job has ", optimizer,
                                                   kRemedy));
  }
  absl::flat_hash_map<absl::string_view, const TensorRecord*> saved;
  for (const ShardFile& shard : manifest.shards) {
    for (const TensorRecord& tensor : shard.tensors) saved.emplace(tensor.name, &tensor);
  }
  for (const VariableSpec& variable : placement.variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const VariableType type, TypeOf(variable));
    const auto found = saved.find(variable.name());
    if (found == saved.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the checkpoint has no variable ", variable.name(), ", the model has one", kRemedy));
    }
    const TensorRecord& tensor = *found->second;
    if (tensor.dtype != type.dtype || !(tensor.shape == type.shape)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable ", variable.name(), " is ", Show(type.dtype, type.shape), " in the model and ",
          Show(tensor.dtype, tensor.shape), " in the checkpoint", kRemedy));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
