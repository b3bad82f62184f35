// Which bytes of a tensor are spoken for, when chunks come in any order, repeated and overlapping.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::ps {

struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // exclusive

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Not thread-safe.
class ByteRanges {
 public:
  // Adds [begin, end) and returns the parts of it that were not there before, ascending.
  std::vector<ByteRange> Claim(uint64_t begin, uint64_t end);

 private:
  std::vector<ByteRange> claimed_;  // ascending, with gaps between them
};

}  // namespace lockstep::ps
