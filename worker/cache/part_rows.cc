#include "worker/cache/part_rows.h"

#include <algorithm>

#include "common/base/check.h"

namespace lockstep::worker {

PartRows::PartRows(const WholeVariable& variable)
    : parts_(variable.parts), ranges_(variable.parts.size()) {}

void PartRows::Divide(std::span<const int64_t> rows) {
  indices_.resize(rows.size());
  size_t begin = 0;
  for (size_t part = 0; part < parts_.size(); ++part) {
    const int64_t first_row = parts_[part].first_row;
    const int64_t end_row = first_row + parts_[part].num_rows;
    size_t end = begin;
    for (; end < rows.size() && rows[end] < end_row; ++end) {
      LOCKSTEP_CHECK(rows[end] >= first_row && (end == begin || rows[end - 1] < rows[end]));
      indices_[end] = rows[end] - first_row;
    }
    ranges_[part] = {begin, std::span<const int64_t>(indices_).subspan(begin, end - begin)};
    begin = end;
  }
  LOCKSTEP_CHECK(begin == rows.size());
}

}  // namespace lockstep::worker
