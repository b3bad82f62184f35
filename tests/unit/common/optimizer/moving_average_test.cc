#include "common/optimizer/moving_average.h"

#include <catch2/catch.hpp>

#include "common/optimizer/adam.h"
#include "common/optimizer/sgd.h"
#include "tests/unit/common/optimizer/trained.h"

namespace lockstep {
namespace {

using test::Trained;

// The averages after each of `values`, beginning at `start`.
std::vector<float> Follow(const MovingAverageOptions& options, float start,
                          const std::vector<float>& values, int64_t first_step = 0) {
  Tensor average(DType::kFloat32, Shape());
  average.as<float>()[0] = start;
  std::vector<float> averages;
  for (const float value : values) {
    UpdateAverage(AverageDecay(options, GlobalStep(first_step++)),
                  TensorView{DType::kFloat32, Shape(), &value}, average.view());
    averages.push_back(average.as<float>()[0]);
  }
  return averages;
}

TEST_CASE("averages agree with TensorFlow's ExponentialMovingAverage") {
  CHECK(Follow({.decay = .25f}, 10, {20}) == std::vector<float>{17.5f});
  CHECK(Follow({.decay = .25f}, 1, {2}) == std::vector<float>{1.75f});
  CHECK(Follow({.decay = .999f}, 10, {20, 30, 0}) ==
        std::vector<float>{10.0100002f, 10.0299902f, 10.0199604f});
  CHECK(Follow({.decay = .999f, .num_updates = true}, 10, {20, 20, 20, 20}) ==
        std::vector<float>{19, 19.818182f, 19.954546f, 19.9860134f});
}

TEST_CASE("num_updates limits the decay until it is larger than the decay") {
  const MovingAverageOptions options{.decay = .9f, .num_updates = true};
  CHECK(AverageDecay(options, GlobalStep(1)) == Approx(.181818f));
  CHECK(AverageDecay(options, GlobalStep(79)) < .9f);
  CHECK(AverageDecay(options, GlobalStep(90)) == .9f);
  CHECK(AverageDecay(options, GlobalStep(int64_t{1} << 60)) == .9f);
  CHECK(AverageDecay({.decay = .9f}, GlobalStep(0)) == .9f);
}

TEST_CASE("the decay is rounded to float32 for doubles too") {
  const double value = 20;
  double average = 10;
  UpdateAverage(.999f, TensorView{DType::kFloat64, Shape(), &value},
                MutableTensorView{DType::kFloat64, Shape(), &average});
  CHECK(average == 10 + 10 * static_cast<double>(1.0f - .999f));
}

TEST_CASE("an averaged rule is the rule, and one slot more that follows its variable") {
  Trained<float> plain(MakeAdam({}), {1, 2, 3});
  Trained<float> averaged(MakeAveraged(MakeAdam({}), {.decay = .99f, .num_updates = true}),
                          {1, 2, 3});
  CHECK(averaged.slot(2) == std::vector<float>{1, 2, 3});
  std::vector<float> expected = {1, 2, 3};
  for (int64_t step = 0; step < 5; ++step) {
    plain.Step(.1f, {.5f, -1, 2});
    averaged.Step(.1f, {.5f, -1, 2});
    CHECK(averaged.value() == plain.value());
    CHECK(averaged.slot(0) == plain.slot(0));
    CHECK(averaged.slot(1) == plain.slot(1));
    CHECK(averaged.scalars() == plain.scalars());
    // The step that was just made counts.
    const auto n = static_cast<float>(step + 1);
    const float share = 1.0f - (1.0f + n) / (10.0f + n);
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] -= (expected[i] - plain.value()[i]) * share;
    }
    CHECK(averaged.slot(2) == expected);
  }
}

TEST_CASE("an average has its own name among the slots") {
  const auto rule = MakeAveraged(MakeSgd(), {});
  CHECK(rule->name() == "sgd");
  REQUIRE(rule->slots().size() == 1);
  CHECK(rule->slots()[0].name == "ExponentialMovingAverage");
  CHECK(rule->slots()[0].starts_as_variable);
}

}  // namespace
}  // namespace lockstep
