// Where a large variable is cut by rows, so that its parts can live on several shards.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::chief {

// Rows [first, first + count) of a variable.
struct RowRange {
  int64_t first = 0;
  int64_t count = 0;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// Consecutive parts of at most `max_part_bytes` each (but at least one row), the fewest there can
// be, no two of which differ by more than a row. They do not depend on the number of shards, so
// that a checkpoint of them restores onto any number. One part, perhaps empty, for a variable that
// fits. `row_bytes` and `max_part_bytes` are positive (CHECK).
std::vector<RowRange> SplitRows(int64_t num_rows, int64_t row_bytes, int64_t max_part_bytes);

}  // namespace lockstep::chief
