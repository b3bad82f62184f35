#include "common/optimizer/schedule.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lockstep {
namespace {

struct Row {
  int64_t step;
  float rate;
};

// What tf.compat.v1.train's schedules of TensorFlow 2.21.0 printed. Their power and cosine are
// vectorised approximations, so the last digit is theirs.
void CheckAgainst(const LearningRateSchedule& schedule, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.step);
    CHECK(LearningRateAt(schedule, GlobalStep(row.step)) == Approx(row.rate).epsilon(1e-6));
  }
}

TEST_CASE("a constant rate is the base") {
  const LearningRateSchedule schedule{.base = .25f, .kind = ConstantSchedule{}};
  for (const int64_t step : {0, 1, 1000000}) {
    CHECK(LearningRateAt(schedule, GlobalStep(step)) == .25f);
  }
}

TEST_CASE("exponential decay agrees with TensorFlow") {
  CheckAgainst({.base = .1f, .kind = ExponentialSchedule{.9f, 7, false}}, {{0, 0x1.99999ap-4f},
                                                                           {1, 0x1.937b28p-4f},
                                                                           {7, 0x1.70a3d6p-4f},
                                                                           {20, 0x1.2f2072p-4f},
                                                                           {50, 0x1.81f7a8p-5f},
                                                                           {121, 0x1.0922d6p-6f}});
  CheckAgainst({.base = .05f, .kind = ExponentialSchedule{.96f, 10, false}},
               {{5, .05f * std::sqrt(.96f)}});
}

TEST_CASE("a staircase decays at whole multiples of decay_steps only") {
  const LearningRateSchedule schedule{.base = .1f, .kind = ExponentialSchedule{.9f, 7, true}};
  CheckAgainst(schedule, {{0, 0x1.99999ap-4f},
                          {6, 0x1.99999ap-4f},
                          {7, 0x1.70a3d6p-4f},
                          {20, 0x1.4bc6a6p-4f},
                          {33, 0x1.0cbd1p-4f},
                          {121, 0x1.113d24p-6f}});
  CheckAgainst({.base = .1f, .kind = ExponentialSchedule{.96f, 3, true}},
               {{100, .1f * std::pow(.96f, 33.0f)}});
}

TEST_CASE("a boundary belongs to the piece that it ends") {
  const LearningRateSchedule schedule{
      .base = 7.0f, .kind = PiecewiseSchedule{{100, 110, 120}, {1.0f, .1f, .01f, .001f}}};
  const std::vector<Row> rows = {{-999, 1.0f}, {0, 1.0f},   {100, 1.0f}, {101, .1f},
                                 {105, .1f},   {110, .1f},  {111, .01f}, {120, .01f},
                                 {121, .001f}, {999, .001f}};
  for (const Row& row : rows) {
    CAPTURE(row.step);
    CHECK(LearningRateAt(schedule, GlobalStep(row.step)) == row.rate);
  }
}

TEST_CASE("cosine decay agrees with TensorFlow and rests at alpha") {
  CheckAgainst({.base = .1f, .kind = CosineSchedule{50, .05f}}, {{0, 0x1.99999ap-4f},
                                                                 {1, 0x1.993752p-4f},
                                                                 {7, 0x1.87154ap-4f},
                                                                 {20, 0x1.13298ep-4f},
                                                                 {33, 0x1.e53d6ap-6f},
                                                                 {50, 0x1.47ae16p-8f},
                                                                 {121, 0x1.47ae16p-8f}});
}

TEST_CASE("polynomial decay rests at its end, or begins again in cycles") {
  const PolynomialSchedule once{.decay_steps = 10, .end = .001f};
  CheckAgainst({.base = .05f, .kind = once},
               {{0, .05f}, {5, .0255f}, {10, .001f}, {15, .001f}, {1000, .001f}});
  PolynomialSchedule cycle = once;
  cycle.cycle = true;
  CheckAgainst({.base = .05f, .kind = cycle},
               {{0, .05f}, {5, .0255f}, {10, .001f}, {15, .049f * .25f + .001f}, {20, .001f}});
  PolynomialSchedule root = once;
  root.power = .5f;
  CheckAgainst({.base = .05f, .kind = root}, {{5, .049f * std::sqrt(.5f) + .001f}});
}

// 15270683 is 1526 * 10007 + 1, and its product with the rounded reciprocal of 10007 is 1526.
TEST_CASE("a period ends at its end where the reciprocal takes the next step for its last") {
  for (const float power : {.5f, 1.0f, 3.0f}) {
    CAPTURE(power);
    const PolynomialSchedule cycle{.decay_steps = 10007, .end = 0, .power = power, .cycle = true};
    for (const int64_t step : {15270682, 15270683}) {
      CAPTURE(step);
      const float rate = LearningRateAt({.base = .1f, .kind = cycle}, GlobalStep(step));
      CHECK(std::isfinite(rate));
      CHECK(rate >= 0);
    }
  }
}

TEST_CASE("natural exponential and inverse time decay follow their formulas") {
  for (const int64_t step : {0, 1, 5, 23}) {
    CAPTURE(step);
    const double quotient = static_cast<double>(step) / 4;
    const GlobalStep at(step);
    CHECK(LearningRateAt({.base = .1f, .kind = NaturalExponentialSchedule{.5f, 4, false}}, at) ==
          Approx(.1 * std::exp(-.5 * quotient)).epsilon(1e-6));
    CHECK(LearningRateAt({.base = .1f, .kind = NaturalExponentialSchedule{.5f, 4, true}}, at) ==
          Approx(.1 * std::exp(-.5 * std::floor(quotient))).epsilon(1e-6));
    CHECK(LearningRateAt({.base = .1f, .kind = InverseTimeSchedule{.5f, 4, false}}, at) ==
          Approx(.1 / (1 + .5 * quotient)).epsilon(1e-6));
    CHECK(LearningRateAt({.base = .1f, .kind = InverseTimeSchedule{.5f, 4, true}}, at) ==
          Approx(.1 / (1 + .5 * std::floor(quotient))).epsilon(1e-6));
  }
}

// Recorded from TensorFlow 2.21.0: 21 * (1 / 7) and 41 * (1 / 41) are not whole in float32.
TEST_CASE("a period begins and ends where TensorFlow's rounded reciprocal has it") {
  const PolynomialSchedule cycle{
      .decay_steps = 7, .end = 0.0038637868128716946f, .power = 2, .cycle = true};
  CheckAgainst({.base = 0.4873596429824829f, .kind = cycle},
               {{20, 0.004960149060934782f}, {21, 0.03408227860927582f}, {22, 0.02606513164937f}});
  const LearningRateSchedule stairs{.base = .3f, .kind = ExponentialSchedule{.7f, 41, true}};
  CheckAgainst(stairs, {{40, .3f}, {41, .3f}, {42, .3f * .7f}});
}

TEST_CASE("warm-up rises in equal parts to where the schedule goes on") {
  CheckAgainst({.base = 1, .kind = ConstantSchedule{}, .warm_up = {.steps = 4}},
               {{0, .25f}, {1, .5f}, {2, .75f}, {3, 1}, {4, 1}, {100, 1}});
  CheckAgainst({.base = 1, .kind = ConstantSchedule{}, .warm_up = {.steps = 4, .start = .2f}},
               {{0, .4f}, {1, .6f}, {3, 1}, {4, 1}});
  const LearningRateSchedule decay{.base = .1f, .kind = ExponentialSchedule{.5f, 10, false}};
  LearningRateSchedule warm = decay;
  warm.warm_up.steps = 5;
  const float full = LearningRateAt(decay, GlobalStep(5));
  CheckAgainst(warm, {{0, full * .2f}, {4, full}, {5, full}});
  for (const int64_t step : {5, 6, 40}) {
    CHECK(LearningRateAt(warm, GlobalStep(step)) == LearningRateAt(decay, GlobalStep(step)));
  }
}

}  // namespace
}  // namespace lockstep
