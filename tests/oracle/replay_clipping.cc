#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/optimizer/clipping.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/replay_kinds.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

absl::StatusOr<Tensor> MatrixOf(const json& rows) {
  const auto height = static_cast<int64_t>(rows.size());
  const auto width = static_cast<int64_t>(rows.at(0).size());
  return TensorOf(DType::kFloat32, Shape({height, width}), Flatten(rows));
}

absl::Status Clip(const json& script, std::vector<Tensor>* tensors, Comparison* comparison) {
  const std::string op = script.at("op");
  const float clip = script.at("clip");
  std::vector<MutableTensorView> views;
  for (Tensor& tensor : *tensors) views.push_back(tensor.view());
  if (op == "global_norm") {
    comparison->Near("norm", DType::kFloat32, Flatten(script.at("norm")),
                     {ClipByGlobalNorm(clip, views)});
  } else if (op == "norm") {
    for (const MutableTensorView& view : views) ClipByNorm(clip, view);
  } else if (op == "value") {
    for (const MutableTensorView& view : views) ClipByValue(-clip, clip, view);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no clipping is called \"", op, "\""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplayClipping(const json& script, Comparison* comparison) {
  std::vector<Tensor> tensors;
  for (const json& rows : script.at("tensors")) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor, MatrixOf(rows));
    tensors.push_back(std::move(tensor));
  }
  LOCKSTEP_RETURN_IF_ERROR(Clip(script, &tensors, comparison));
  for (size_t i = 0; i < tensors.size(); ++i) {
    comparison->Near(absl::StrCat("clipped[", i, "]"), DType::kFloat32,
                     Flatten(script.at("clipped").at(i)), ElementsOf(tensors[i].view()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::oracle
