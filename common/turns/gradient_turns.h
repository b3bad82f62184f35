// GradientTurns decides which variables get gradients in which step. Nothing else decides for which
// variables a step waits. Workers and ps both ask it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace lockstep {

// LossTurns decides which loss a step trains. The losses of a job take turns in its order, each for
// its number of steps; then the first one follows again. Constant.
class LossTurns {
 public:
  // One loss: each step is its turn.
  LossTurns() : LossTurns(std::vector<int64_t>()) {}
  // The steps of each loss's turn, at least 1 (CHECK). None: as above.
  explicit LossTurns(const std::vector<int64_t>& steps);

  size_t num_losses() const { return ends_.size(); }
  // Returns the loss that `step` trains, counted from 0.
  size_t LossOf(GlobalStep step) const;
  // Steps after which the first loss follows again.
  int64_t cycle() const { return ends_.back(); }

 private:
  std::vector<int64_t> ends_;  // within a cycle: the step after each turn
};

// Constant.
class GradientTurns {
 public:
  // Turns of a variable; any other turn is the loss that trains it, counted from 0.
  static constexpr int kEveryStep = -1;
  static constexpr int kNever = -2;

  // `turn_of`: by variable.
  GradientTurns(LossTurns turns, std::vector<int> turn_of);

  size_t num_variables() const { return turn_of_.size(); }
  const LossTurns& losses() const { return turns_; }
  // Returns whether the variable gets gradients in the step, which waits for them. Otherwise the
  // next version has the same value.
  bool Expects(GlobalStep step, size_t variable) const;
  // Returns whether any variable gets gradients in the step.
  bool ExpectsAny(GlobalStep step) const;
  // The same for the steps from `begin` to before `end`: looks at one after the other.
  bool ExpectsAny(GlobalStep begin, GlobalStep end) const;
  // Returns whether it gets gradients in any step.
  bool IsTrained(size_t variable) const { return turn_of_[variable] != kNever; }

 private:
  LossTurns turns_;
  std::vector<int> turn_of_;
};

}  // namespace lockstep
