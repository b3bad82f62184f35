#include "worker/data/row_indices.h"

#include "common/dataset/example_rules.h"

namespace lockstep::worker {
absl::Status CheckRowIndices(const ExampleTable& table, const ExampleSpec& spec) {
  const int64_t width = spec.input_shape.num_elements();
  return VisitElements(table.features, [&](auto all) -> absl::Status {
    for (const ExampleSpec::RowIndices& indices : spec.row_indices) {
      for (int64_t example = 0; example < table.size(); ++example) {
        for (int64_t c = indices.first; c < indices.first + indices.count; ++c) {
          const auto value = all[example * width + c];
          if (IsRowIndex(static_cast<float>(value), indices.rows)) continue;
          return NotARowIndex(table.FileOf(example).features, table.Place(example),
                              table.ColumnName(c), static_cast<double>(value), indices.rows);
        }
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace lockstep::worker
