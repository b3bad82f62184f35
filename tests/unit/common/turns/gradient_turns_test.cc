#include "common/turns/gradient_turns.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

namespace lockstep {
namespace {

std::string LossesOf(const LossTurns& turns, int64_t steps) {
  std::string losses;
  for (int64_t step = 0; step < steps; ++step) {
    losses += std::to_string(turns.LossOf(GlobalStep(step)));
  }
  return losses;
}

TEST_CASE("losses take turns in their order, for ever") {
  CHECK(LossesOf(LossTurns(), 5) == "00000");
  CHECK(LossesOf(LossTurns({4}), 6) == "000000");
  CHECK(LossesOf(LossTurns({1, 1}), 6) == "010101");
  CHECK(LossesOf(LossTurns({10, 1}), 24) == "000000000010000000000100");
  CHECK(LossesOf(LossTurns({2, 3, 1}), 13) == "0011120011120");
  const LossTurns turns({2, 3, 1});
  CHECK(turns.cycle() == 6);
  CHECK(turns.num_losses() == 3);
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(turns.LossOf(GlobalStep(most - most % 6 - 1)) == 2);
}

TEST_CASE("a variable gets gradients in every step, in its loss's turns, or never") {
  const GradientTurns turns(LossTurns({2, 1}),
                            {GradientTurns::kEveryStep, GradientTurns::kNever, 0, 1});
  for (int64_t step = 0; step < 9; ++step) {
    const GlobalStep at(step);
    CHECK(turns.Expects(at, 0));
    CHECK_FALSE(turns.Expects(at, 1));
    CHECK(turns.Expects(at, 2) == (step % 3 != 2));
    CHECK(turns.Expects(at, 3) == (step % 3 == 2));
  }
  CHECK(turns.IsTrained(0));
  CHECK_FALSE(turns.IsTrained(1));
  CHECK(turns.IsTrained(2));
  CHECK(turns.num_variables() == 4);
}

TEST_CASE("in the turns of a loss that trains nothing here no variable gets gradients") {
  const GradientTurns turns(LossTurns({2, 1}), {0, GradientTurns::kNever});
  for (int64_t step = 0; step < 6; ++step) {
    CHECK(turns.ExpectsAny(GlobalStep(step)) == (step % 3 != 2));
  }
  CHECK_FALSE(GradientTurns(LossTurns(), {GradientTurns::kNever}).ExpectsAny(GlobalStep(0)));
  CHECK_FALSE(turns.ExpectsAny(GlobalStep(2), GlobalStep(3)));
  CHECK(turns.ExpectsAny(GlobalStep(2), GlobalStep(4)));
  CHECK_FALSE(turns.ExpectsAny(GlobalStep(3), GlobalStep(3)));
}

}  // namespace
}  // namespace lockstep
