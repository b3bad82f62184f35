// ByteRanges records a tensor's claimed bytes: chunks come in any order, repeated and overlapping.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace lockstep {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // exclusive

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Not thread-safe.
class ByteRanges {
 public:
  // One range is enough if chunks come in their order, or a tensor whole.
  using List = absl::InlinedVector<ByteRange, 1>;

  // Adds [begin, end) and returns the parts of it that were not there before, ascending.
  List Claim(uint64_t begin, uint64_t end);
  // Returns whether all of [begin, end) has been claimed.
  bool Covers(uint64_t begin, uint64_t end) const;
  // Returns the first byte of [begin, end) that has not been claimed; `end`: there is none.
  uint64_t FirstGap(uint64_t begin, uint64_t end) const;
  void Clear() { claimed_.clear(); }

 private:
  List claimed_;  // ascending, with gaps between them
};

}  // namespace lockstep
