#include "common/dataset/example_rules.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {

absl::Status WrongLabel(absl::string_view file, absl::string_view place, double label,
                        const ExampleSpec& spec, int64_t num_classes) {
  const std::string got =
      absl::StrCat(file, ": ", place, ": label ", absl::StrFormat("%.15g", label), ", expected a ");
  if (!spec.classifier) {
    return absl::InvalidArgumentError(absl::StrCat(
        got,
        "number from 0 to 1, as sigmoid_cross_entropy compares with. Remedy: correct the "
        "label; is it another column? to predict any number end the model with l2_loss."));
  }
  const bool too_large = IsClass(label, INT64_MAX);
  return absl::InvalidArgumentError(absl::StrCat(
      got, "whole number from 0 to ", num_classes - 1,
      ", one for each output of the model. Remedy: ",
      too_large
          ? absl::StrFormat("give the model %.15g outputs (units), or correct the label", label + 1)
          : std::string("correct the label; is it another column? to predict numbers end the "
                        "model with l2_loss"),
      "."));
}

absl::Status NotARowIndex(absl::string_view file, absl::string_view place, absl::string_view column,
                          double value, int64_t rows) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", place, ": ", column, ": ", absl::StrFormat("%.15g", value),
                   ", expected a row index, a whole number from 0 to ", rows - 1,
                   ". Remedy: correct it, or give the embedding more rows."));
}

absl::StatusOr<int64_t> NumClasses(int64_t num_classes, const ExampleSpec& spec) {
  if (num_classes >= 0 && num_classes <= spec.num_outputs) {
    return num_classes == 0 ? spec.num_outputs : num_classes;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "data.num_classes: expected at most ", spec.num_outputs, ", the model's outputs, got ",
      num_classes, ". Remedy: leave it out, or give the model more outputs."));
}

absl::Status CheckLabelShape(absl::string_view file, bool csv, const Shape& label,
                             const ExampleSpec& spec) {
  if (!spec.uses_labels) return absl::OkStatus();
  const int64_t outputs = spec.num_outputs;
  const int64_t wanted = spec.classifier ? spec.labels_per_example : outputs;
  // Also [1]: of a sequence of one time step.
  if (label.rank() <= 1 && label.num_elements() == wanted) return absl::OkStatus();
  if (csv && label.rank() == 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": each line, a time step of a sequence, has a ",
        spec.classifier ? "label" : "target", ", ", label.num_elements(),
        " for each sequence, and the model predicts ", wanted,
        ". Remedy: set return_sequences: true in the last recurrent layer, for one at each time "
        "step, or take IDX files with an example for each sequence."));
  }
  if (csv && spec.classifier) {
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": a CSV file has one label, the label_column, and the model predicts one for each "
        "of ",
        wanted, " time steps. Remedy: take IDX files with ", wanted,
        " labels for each example, or end the model's sequences with return_sequences: false."));
  }
  if (csv) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": a CSV file has one target, the label_column, and the model has ", outputs,
        " outputs. Remedy: give the layer before l2_loss one output (units: 1), or take IDX files "
        "with ",
        outputs, " targets for each example."));
  }
  const std::string expected = spec.classifier && wanted == 1 ? "one label"
                               : spec.classifier              ? absl::StrCat(wanted, " labels")
                               : outputs == 1                 ? "1 target"
                                                              : absl::StrCat(outputs, " targets");
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": expected ", expected, " for each example, got the shape ", label.ToString(),
      ". Remedy: name the file of labels, or give the model as many outputs as there are "
      "targets."));
}

}  // namespace lockstep
