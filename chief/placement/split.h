// Splits a large variable by rows into parts that can be on several shards.
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

// Returns the fewest consecutive parts of at most `max_part_bytes` each, but at least one row.
// Their sizes differ by at most one row. They do not depend on the number of shards, so a
// checkpoint restores onto any number. A variable that fits has one part, perhaps empty.
// `row_bytes` and `max_part_bytes` are positive (CHECK).
std::vector<RowRange> SplitRows(int64_t num_rows, int64_t row_bytes, int64_t max_part_bytes);

}  // namespace lockstep::chief
