// Where the rows of a table that a variable holds lie in it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/check.h"

namespace lockstep::worker::cpu {

// A bit for each row of the table, and for each word of bits how many rows are held below it: a row
// is found in two reads, where a binary search took most of an embedding's time.
class HeldRows {
 public:
  explicit HeldRows(int64_t table_rows)
      : bits_((table_rows + kBits - 1) / kBits), below_(bits_.size()) {}

  // Ascending, each once, all in the table. Allocates nothing.
  void Set(std::span<const int64_t> rows) {
    std::ranges::fill(bits_, 0);
    for (int64_t row : rows) bits_[row / kBits] |= uint64_t{1} << row % kBits;
    int32_t count = 0;
    for (size_t word = 0; word < bits_.size(); ++word) {
      below_[word] = count;
      count += std::popcount(bits_[word]);
    }
  }

  // The index of a held row among those of Set.
  int64_t PositionOf(int64_t row) const {
    const uint64_t word = bits_[row / kBits];
    const uint64_t bit = uint64_t{1} << row % kBits;
    LOCKSTEP_CHECK(word & bit);
    return below_[row / kBits] + std::popcount(word & (bit - 1));
  }

 private:
  static constexpr int64_t kBits = 64;

  std::vector<uint64_t> bits_;
  std::vector<int32_t> below_;
};

}  // namespace lockstep::worker::cpu
