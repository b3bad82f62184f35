// HeldRows maps a row of a table to its position among the rows that a variable holds.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/check.h"

namespace lockstep::worker::cpu {

// Has a bit for each row of the table, and for each nonzero word of bits the number of rows held
// below it. A lookup takes two reads; a binary search took most of an embedding's time.
class HeldRows {
 public:
  explicit HeldRows(int64_t table_rows)
      : bits_((table_rows + kBits - 1) / kBits), below_(bits_.size()) {}

  // Rows are ascending, each once, all in the table. The cost depends on their number, not on the
  // table's size. Allocates nothing once it has seen the largest number of rows.
  void Set(std::span<const int64_t> rows) {
    for (const int64_t word : words_) bits_[word] = 0;
    words_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t word = rows[i] / kBits;
      if (bits_[word] == 0) {
        words_.push_back(word);
        below_[word] = static_cast<int32_t>(i);
      }
      bits_[word] |= uint64_t{1} << rows[i] % kBits;
    }
  }

  // Returns the index of a held row among those of Set (CHECK).
  int64_t PositionOf(int64_t row) const {
    const uint64_t word = bits_[row / kBits];
    const uint64_t bit = uint64_t{1} << row % kBits;
    LOCKSTEP_CHECK(word & bit);
    return below_[row / kBits] + std::popcount(word & (bit - 1));
  }

 private:
  static constexpr int64_t kBits = 64;

  std::vector<uint64_t> bits_;
  std::vector<int32_t> below_;  // of nonzero words
  std::vector<int64_t> words_;  // the nonzero ones
};

}  // namespace lockstep::worker::cpu
