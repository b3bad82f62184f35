#include "common/tensor_proto/turns.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"

namespace lockstep {

absl::StatusOr<LossTurns> TurnsOf(const Placement& placement) {
  int64_t cycle = 0;
  for (const int64_t steps : placement.turns()) {
    if (steps < 1 || steps > limits::kMaxStep - cycle) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement: turns: expected at least 1 step each and at most ",
                       limits::kMaxStep, " together, got ", steps));
    }
    cycle += steps;
  }
  for (const VariableSpec& spec : placement.variables()) {
    if (spec.loss() <= static_cast<uint32_t>(placement.turns_size())) continue;
    return absl::InvalidArgumentError(absl::StrCat("placement: variable ", spec.name(),
                                                   " is of loss ", spec.loss(), ", but ",
                                                   placement.turns_size(), " take turns"));
  }
  return LossTurns(std::vector<int64_t>(placement.turns().begin(), placement.turns().end()));
}

int TurnOf(const VariableSpec& spec) {
  if (spec.frozen() || spec.replicated()) return GradientTurns::kNever;
  return spec.loss() == 0 ? GradientTurns::kEveryStep : static_cast<int>(spec.loss()) - 1;
}

}  // namespace lockstep
