#include "worker/data/row_indices.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

absl::Status NoIndex(const ExampleTable& table, int64_t example, int64_t column, double value,
                     int64_t rows) {
  return absl::DataLossError(absl::StrCat(
      table.features_file, ": ", table.Place(example), ": ", table.ColumnName(column), ": ",
      absl::StrFormat("%.15g", value), ", expected a row index, a whole number from 0 to ",
      rows - 1, ". Remedy: correct it, or give the embedding more rows."));
}

}  // namespace

absl::Status CheckRowIndices(const ExampleTable& table, const ExampleSpec& spec) {
  const int64_t width = spec.input_shape.num_elements();
  return VisitElements(table.features, [&](auto all) -> absl::Status {
    for (const ExampleSpec::RowIndices& indices : spec.row_indices) {
      for (int64_t example = 0; example < table.size(); ++example) {
        for (int64_t c = indices.first; c < indices.first + indices.count; ++c) {
          const auto value = all[example * width + c];
          const float index = static_cast<float>(value);
          const bool sound =
              index >= 0 && index < static_cast<float>(indices.rows) && index == std::floor(index);
          if (!sound) return NoIndex(table, example, c, static_cast<double>(value), indices.rows);
        }
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace lockstep::worker
