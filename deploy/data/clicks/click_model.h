// The world that the example job "clicks" learns from: who clicks on what, with probabilities that
// are known. deploy/examples/clicks/README.md has the formula.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/philox.h"

namespace lockstep::deploy {

struct Click {
  static constexpr int kCategorical = 8;  // columns of row indices, and one more, crossed
  static constexpr int kNumeric = 6;

  // Rows of one table of ClickModel::num_rows() rows; the columns have parts of it of their own.
  std::array<int64_t, kCategorical + 1> rows;
  std::array<double, kNumeric> numbers;  // whole thousandths
  double probability = 0;                // of a click, given all of the above
  bool clicked = false;
};

// Example i is a function of (seed, i). Thread-safe.
class ClickModel {
 public:
  explicit ClickModel(uint64_t seed);

  Click At(int64_t example) const;

  static int64_t num_rows();
  // Of Click::rows, then of Click::numbers.
  static std::vector<std::string> ColumnNames();

 private:
  double Logit(const std::array<int64_t, Click::kCategorical>& ids, const Click& click) const;

  const uint64_t seed_;
  const Philox examples_;
  std::array<std::vector<double>, Click::kCategorical> popularity_;  // cumulative, by rank
};

}  // namespace lockstep::deploy
