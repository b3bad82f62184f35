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

}  // namespace
}  // namespace lockstep
