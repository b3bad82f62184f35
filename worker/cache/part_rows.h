// Some rows of a sparse variable, divided over the parts in which it is split: pulled by them
// before a step, and pushed by them after it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

// Pure. Allocates nothing once it has had as many rows as it ever will.
class PartRows {
 public:
  // The rows that lie in one part: rows [begin, begin + indices.size()) of those divided.
  struct Range {
    size_t begin = 0;
    std::span<const int64_t> indices;  // counted from the part's first row
  };

  // `variable` outlives this.
  explicit PartRows(const WholeVariable& variable);

  // `rows` ascend, each once, and the variable has them (CHECK).
  void Divide(std::span<const int64_t> rows);
  // Valid until the next Divide.
  const Range& of_part(size_t part) const { return ranges_[part]; }

 private:
  const std::vector<VariablePart>& parts_;
  std::vector<int64_t> indices_;
  std::vector<Range> ranges_;
};

}  // namespace lockstep::worker
