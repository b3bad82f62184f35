// The rules for single values of a data set: which labels a model takes, and which row indices.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/example_spec.h"
#include "common/tensor/shape.h"
#include "proto/job.pb.h"

namespace lockstep {

// A whole number in [0, num_classes).
inline bool IsClass(double label, int64_t num_classes) {
  return label >= 0 && label < static_cast<double>(num_classes) && label == std::floor(label);
}

// A whole number in [0, rows), as the float32 that the model sees.
inline bool IsRowIndex(float value, int64_t rows) {
  return value >= 0 && value < static_cast<float>(rows) && value == std::floor(value);
}

// Whether the model takes this label: a class, a probability, or any number.
inline bool TakesLabel(const ExampleSpec& spec, int64_t num_classes, double label) {
  if (spec.classifier) return IsClass(label, num_classes);
  return !spec.predicts_probabilities || (label >= 0 && label <= 1);
}

// INVALID_ARGUMENT naming file, place and label, for a label that TakesLabel refuses.
absl::Status WrongLabel(absl::string_view file, absl::string_view place, double label,
                        const ExampleSpec& spec, int64_t num_classes);

// The same for a value that IsRowIndex refuses. `column` as ExampleTable::ColumnName.
absl::Status NotARowIndex(absl::string_view file, absl::string_view place, absl::string_view column,
                          double value, int64_t rows);

// How many classes the labels of a classifier have: data.num_classes, or the model's outputs.
// INVALID_ARGUMENT for more than the model has outputs.
absl::StatusOr<int64_t> NumClasses(int64_t num_classes, const ExampleSpec& spec);

// INVALID_ARGUMENT naming the file where labels of this shape are not the model's: one label for a
// classifier, or one for each time step, as many targets as outputs for a regression. `csv`: a
// column of a file with examples.
absl::Status CheckLabelShape(absl::string_view file, bool csv, const Shape& label,
                             const ExampleSpec& spec);

}  // namespace lockstep
