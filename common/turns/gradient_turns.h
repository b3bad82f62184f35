// Which variables get gradients in which step: the one place that says for which variables a step
// waits. Workers and ps ask it alike. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace lockstep {

// Which loss is trained in a step. The losses of a job take turns in its order, each for so many
// steps; then the first one follows again. Constant.
class LossTurns {
 public:
  // One loss: each step is its turn.
  LossTurns() : LossTurns(std::vector<int64_t>()) {}
  // The steps of each loss's turn, at least 1 (CHECK). None: as above.
  explicit LossTurns(const std::vector<int64_t>& steps);

  size_t num_losses() const { return ends_.size(); }
  // Counted from 0.
  size_t LossOf(GlobalStep step) const;
  // Steps after which the first loss follows again.
  int64_t cycle() const { return ends_.back(); }

 private:
  std::vector<int64_t> ends_;  // within a cycle: the step after each turn
};

// Constant.
class GradientTurns {
 public:
  // Of a variable; otherwise the loss that trains it, counted from 0.
  static constexpr int kEveryStep = -1;
  static constexpr int kNever = -2;

  // `turn_of`: by variable.
  GradientTurns(LossTurns turns, std::vector<int> turn_of);

  size_t num_variables() const { return turn_of_.size(); }
  const LossTurns& losses() const { return turns_; }
  // Whether the variable gets gradients in the step, which waits for them. Otherwise it keeps its
  // value, which is also that of the next version.
  bool Expects(GlobalStep step, size_t variable) const;
  // Whether any variable gets gradients in the step.
  bool ExpectsAny(GlobalStep step) const;
  // The same of the steps from `begin` to before `end`: looks at one after the other.
  bool ExpectsAny(GlobalStep begin, GlobalStep end) const;
  // Whether it gets gradients in any step.
  bool IsTrained(size_t variable) const { return turn_of_[variable] != kNever; }

 private:
  LossTurns turns_;
  std::vector<int> turn_of_;
};

}  // namespace lockstep
