#include "common/optimizer_proto/learning_rate.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

float RateAt(const std::string& learning_rate, int64_t step) {
  LearningRate rate;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(learning_rate, &rate));
  return LearningRateAt(ToSchedule(rate), GlobalStep(step));
}

TEST_CASE("each schedule of a job becomes itself, with every number in its place") {
  CHECK(RateAt("base: 0.5", 7) == .5f);
  CHECK(RateAt("base: 0.5 constant {}", 7) == .5f);
  CHECK(RateAt("base: 8 exponential { decay_rate: 0.5 decay_steps: 2 }", 4) == 2);
  CHECK(RateAt("base: 8 exponential { decay_rate: 0.5 decay_steps: 2 staircase: true }", 5) == 2);
  CHECK(RateAt("base: 8 natural_exp { decay_rate: 0.5 decay_steps: 2 }", 4) ==
        Approx(8 * std::exp(-1.0)));
  CHECK(RateAt("base: 8 natural_exp { decay_rate: 0.5 decay_steps: 2 staircase: true }", 5) ==
        Approx(8 * std::exp(-1.0)));
  CHECK(RateAt("base: 8 inverse_time { decay_rate: 0.5 decay_steps: 2 }", 4) == 4);
  CHECK(RateAt("base: 8 inverse_time { decay_rate: 0.5 decay_steps: 2 staircase: true }", 5) == 4);
  CHECK(RateAt("piecewise { boundaries: [3, 5] values: [1, 2, 3] }", 4) == 2);
  CHECK(RateAt("base: 9 polynomial { decay_steps: 4 end_learning_rate: 1 power: 2 }", 2) == 3);
  CHECK(RateAt("base: 9 polynomial { decay_steps: 4 end_learning_rate: 1 power: 1 cycle: true }",
               6) == 3);
  CHECK(RateAt("base: 8 cosine { decay_steps: 4 alpha: 0.5 }", 4) == 4);
}

TEST_CASE("a job's warm-up is in front of its schedule") {
  const std::string rate = "base: 8 constant {} warm_up { steps: 4 start: 4 }";
  CHECK(RateAt(rate, 0) == 5);
  CHECK(RateAt(rate, 3) == 8);
  CHECK(RateAt(rate, 4) == 8);
}

}  // namespace
}  // namespace lockstep
