#include "worker/data/labels.h"

#include "common/base/status_macros.h"
#include "common/dataset/example_rules.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<Tensor> Classes(const ExampleTable& table, int64_t num_classes) {
  const int64_t per_example = table.labels.shape.num_elements();
  Tensor labels(DType::kInt32, table.labels.shape.rank() == 0 ? Shape({table.size()})
                                                              : Shape({table.size(), per_example}));
  const auto out = labels.as<int32_t>();
  const auto convert = [&]<typename T>(absl::Span<const T> in) -> absl::Status {
    for (int64_t i = 0; i < labels.num_elements(); ++i) {
      const double label = in[i];
      if (!IsClass(label, num_classes)) {
        const int64_t example = i / per_example;
        return NotAClass(table.FileOf(example).labels, table.Place(example), label, num_classes);
      }
      out[i] = static_cast<int32_t>(label);
    }
    return absl::OkStatus();
  };
  LOCKSTEP_RETURN_IF_ERROR(VisitElements(table.labels, convert));
  return labels;
}

Tensor Targets(const ExampleTable& table, int64_t num_outputs) {
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
  const ExampleTable::File& file = table.FileOf(0);
  const bool csv = file.labels == file.features;
  LOCKSTEP_RETURN_IF_ERROR(CheckLabelShape(file.labels, csv, table.labels.shape, spec));
  if (!spec.classifier) return Targets(table, spec.num_outputs);
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t classes, NumClasses(num_classes, spec));
  return Classes(table, classes);
}

}  // namespace lockstep::worker
