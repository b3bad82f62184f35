#include "worker/data/labels.h"

#include <span>

#include "common/base/status_macros.h"
#include "common/dataset/example_rules.h"

namespace lockstep::worker {
namespace {

template <typename Out>
absl::Status Convert(const ExampleTable& table, const ExampleSpec& spec, int64_t num_classes,
                     std::span<Out> out) {
  return VisitElements(table.labels, [&](auto in) -> absl::Status {
    const int64_t per_row = table.labels.shape.num_elements() / table.rows_per_sequence;
    for (size_t i = 0; i < in.size(); ++i) {
      const double label = in[i];
      if (!TakesLabel(spec, num_classes, label)) {
        const int64_t row = static_cast<int64_t>(i) / per_row;
        const int64_t example = row / table.rows_per_sequence;
        return WrongLabel(table.FileOf(example).labels,
                          table.Place(example, row % table.rows_per_sequence), label, spec,
                          num_classes);
      }
      out[i] = static_cast<Out>(in[i]);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Tensor> Classes(const ExampleTable& table, const ExampleSpec& spec,
                               int64_t num_classes) {
  const int64_t per_example = table.labels.shape.num_elements();
  Tensor labels(DType::kInt32, table.labels.shape.rank() == 0 ? Shape({table.size()})
                                                              : Shape({table.size(), per_example}));
  LOCKSTEP_RETURN_IF_ERROR(Convert(table, spec, num_classes, labels.as<int32_t>()));
  return labels;
}

absl::StatusOr<Tensor> Targets(const ExampleTable& table, const ExampleSpec& spec) {
  Tensor targets(DType::kFloat32, Shape({table.size(), spec.num_outputs}));
  LOCKSTEP_RETURN_IF_ERROR(Convert(table, spec, /*num_classes=*/0, targets.as<float>()));
  return targets;
}

}  // namespace

absl::StatusOr<Tensor> MakeLabels(const ExampleTable& table, const ExampleSpec& spec,
                                  int64_t num_classes) {
  const ExampleTable::File& file = table.FileOf(0);
  const bool csv = file.labels == file.features;
  LOCKSTEP_RETURN_IF_ERROR(CheckLabelShape(file.labels, csv, table.labels.shape, spec));
  if (!spec.classifier) return Targets(table, spec);
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t classes, NumClasses(num_classes, spec));
  return Classes(table, spec, classes);
}

}  // namespace lockstep::worker
