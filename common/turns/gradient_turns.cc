#include "common/turns/gradient_turns.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace lockstep {

LossTurns::LossTurns(const std::vector<int64_t>& steps) {
  int64_t end = 0;
  for (const int64_t turn : steps) {
    LOCKSTEP_CHECK(turn >= 1);
    ends_.push_back(end += turn);
  }
  if (ends_.empty()) ends_.push_back(1);
}

size_t LossTurns::LossOf(GlobalStep step) const {
  const int64_t within = step.value() % cycle();
  return static_cast<size_t>(std::ranges::upper_bound(ends_, within) - ends_.begin());
}

GradientTurns::GradientTurns(LossTurns turns, std::vector<int> turn_of)
    : turns_(std::move(turns)), turn_of_(std::move(turn_of)) {}

bool GradientTurns::Expects(GlobalStep step, size_t variable) const {
  const int turn = turn_of_[variable];
  if (turn == kEveryStep) return true;
  return turn != kNever && static_cast<size_t>(turn) == turns_.LossOf(step);
}

bool GradientTurns::ExpectsAny(GlobalStep step) const {
  for (size_t variable = 0; variable < num_variables(); ++variable) {
    if (Expects(step, variable)) return true;
  }
  return false;
}

bool GradientTurns::ExpectsAny(GlobalStep begin, GlobalStep end) const {
  for (GlobalStep step = begin; step < end; step = step.next()) {
    if (ExpectsAny(step)) return true;
  }
  return false;
}

}  // namespace lockstep
