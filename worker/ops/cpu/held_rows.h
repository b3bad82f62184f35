// Where the rows of a table that a variable holds lie in it.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/check.h"

namespace lockstep::worker::cpu {

// A bit for each row of the table, and for each word of bits that has any how many rows are held
// below it: a row is found in two reads, where a binary search took most of an embedding's time.
class HeldRows {
 public:
  explicit HeldRows(int64_t table_rows)
      : bits_((table_rows + kBits - 1) / kBits), below_(bits_.size()) {}

  // Ascending, each once, all in the table. Costs what the rows do, whatever the table's size;
  // allocates nothing once there have been as many as there ever will.
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
  std::vector<int32_t> below_;  // of a word that has bits
  std::vector<int64_t> words_;  // that have
};

}  // namespace lockstep::worker::cpu
