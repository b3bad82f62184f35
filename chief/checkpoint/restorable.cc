#include "chief/checkpoint/restorable.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/whole_tensors.h"
#include "common/tensor_proto/convert.h"

namespace lockstep::chief {
namespace {

constexpr char kRemedy[] =
    ". Remedy: use the model and the optimizer that the checkpoint was made with, or start with "
    "--fresh";

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
  const WholeTensors saved(manifest);
  for (const VariableSpec& variable : placement.variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const VariableType type, TypeOf(variable));
    const std::string& name = variable.has_part() ? variable.part().of() : variable.name();
    const absl::StatusOr<const WholeTensor*> found = saved.Find(name);
    if (absl::IsNotFound(found.status())) {
      return absl::InvalidArgumentError(
          absl::StrCat("the checkpoint has no variable ", name, ", the model has one", kRemedy));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const WholeTensor* tensor, found);
    if (tensor->dtype != type.dtype || !(tensor->shape == type.whole)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable ", name, " is ", Show(type.dtype, type.whole), " in the model and ",
          Show(tensor->dtype, tensor->shape), " in the checkpoint", kRemedy));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
