#include "chief/placement/split.h"

#include <algorithm>

#include "common/base/check.h"

namespace lockstep::chief {

std::vector<RowRange> SplitRows(int64_t num_rows, int64_t row_bytes, int64_t max_part_bytes) {
  LOCKSTEP_CHECK(num_rows >= 0 && row_bytes > 0 && max_part_bytes > 0);
  const int64_t most_rows = std::max<int64_t>(1, max_part_bytes / row_bytes);
  const int64_t num_parts = std::max<int64_t>(1, (num_rows - 1) / most_rows + 1);
  std::vector<RowRange> parts;
  parts.reserve(num_parts);
  int64_t first = 0;
  for (int64_t part = 0; part < num_parts; ++part) {
    // The first num_rows % num_parts parts have a row more than the others.
    const int64_t count = num_rows / num_parts + (part < num_rows % num_parts ? 1 : 0);
    parts.push_back({first, count});
    first += count;
  }
  return parts;
}

}  // namespace lockstep::chief
