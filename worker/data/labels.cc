#include "worker/data/labels.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

absl::Status WrongShape(const ExampleTable& table, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(table.labels_file, ": expected ", expected, " for each example, got the shape ",
                   table.labels.shape.ToString(), ". Remedy: name the file of labels."));
}

absl::StatusOr<Tensor> Classes(const ExampleTable& table, int64_t num_classes) {
  if (table.labels.shape.rank() != 0) return WrongShape(table, "one label");
  Tensor labels(DType::kInt32, Shape({table.size()}));
  const auto out = labels.as<int32_t>();
  const auto convert = [&]<typename T>(absl::Span<const T> in) -> absl::Status {
    for (int64_t i = 0; i < table.size(); ++i) {
      const double label = in[i];
      if (label < 0 || label >= num_classes || label != std::floor(label)) {
        return absl::DataLossError(absl::StrCat(
            table.labels_file, ": ", table.Place(i), ": label ", absl::StrFormat("%.15g", label),
            ", expected a whole number from 0 to ", num_classes - 1,
            ". Remedy: correct the label, or give the model more outputs."));
      }
      out[i] = static_cast<int32_t>(label);
    }
    return absl::OkStatus();
  };
  LOCKSTEP_RETURN_IF_ERROR(VisitElements(table.labels, convert));
  return labels;
}

absl::StatusOr<Tensor> Targets(const ExampleTable& table, int64_t num_outputs) {
  const Shape& shape = table.labels.shape;
  if (shape.rank() > 1 || shape.num_elements() != num_outputs) {
    return WrongShape(table, absl::StrCat(num_outputs, num_outputs == 1 ? " target" : " targets"));
  }
  Tensor targets(DType::kFloat32, Shape({table.size(), num_outputs}));
  const auto out = targets.as<float>();
  VisitElements(table.labels, [&](auto in) {
    for (size_t i = 0; i < in.size(); ++i) out[i] = static_cast<float>(in[i]);
  });
  return targets;
}

}  // namespace

absl::StatusOr<Tensor> MakeLabels(const ExampleTable& table, const ExampleSpec& spec,
                                  int64_t num_classes) {
  if (!spec.classifier) return Targets(table, spec.num_outputs);
  if (num_classes < 0 || num_classes > spec.num_outputs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.num_classes: expected at most ", spec.num_outputs, ", the model's outputs, got ",
        num_classes, ". Remedy: leave it out, or give the model more outputs."));
  }
  return Classes(table, num_classes == 0 ? spec.num_outputs : num_classes);
}

}  // namespace lockstep::worker
