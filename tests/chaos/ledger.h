// A job whose last values tell which gradients were counted: the gradient of replica r of step s is
// zero but for one row of each table, and no other gradient has that row. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::test {

class Ledger {
 public:
  // Two, since two ps share them.
  static constexpr const char* kTables[] = {"first/table", "second/table"};
  // Beyond them a row would be used again.
  static constexpr int64_t kMaxSteps = 50'000;

  // `required`: gradients of a step.
  Ledger(int num_workers, int required) : num_workers_(num_workers), required_(required) {}

  // An example for each row, in the order of the rows. A step takes one for each worker.
  std::string Csv() const;
  std::string Model() const;
  // Fields of OptimizerDef.
  static std::string Optimizer();

  // What is wrong with the values of `table` after so many steps: each of these steps has counted
  // `required` gradients, each once, and no other step has counted any. Where there are more
  // workers a step may count more: it takes all that are there when the chief grants it, which a
  // ps that takes another's place waits for. At most a few lines.
  std::vector<std::string> Check(absl::string_view table, std::span<const float> values,
                                 int64_t steps) const;

 private:
  int64_t num_rows() const { return kMaxSteps * num_workers_; }

  const int num_workers_;
  const int required_;
};

}  // namespace lockstep::test
