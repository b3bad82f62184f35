#include "worker/step/gradient_clipper.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/placed_variable.h"

namespace lockstep::worker {
namespace {

// Two trained variables of two elements and, last, a statistic, ready in the order of a backward
// pass: from the last to the first.
struct Step {
  explicit Step(const Clipping& clipping) {
    Placement placement;
    placement.set_shards(1);
    for (int variable = 0; variable < 3; ++variable) {
      *placement.add_variables() = PlacedVariable(variable, std::to_string(variable), 2, 0,
                                                  /*trainable=*/variable != 2, 0);
    }
    const auto layout = VariableLayout::Create(placement);
    REQUIRE(layout.ok());
    GradientClipper clipper(clipping, *layout, [this](int variable) {
      sent.push_back(variable);
      sent_values.push_back(gradients[variable]);
    });
    for (int run = 0; run < 2; ++run) {  // the second finds nothing of the first
      gradients = {{3, -4}, {0, 12}, {100, -100}};
      sent.clear();
      sent_values.clear();
      for (int variable = 2; variable >= 0; --variable) {
        clipper.Ready(variable, {DType::kFloat32, Shape({2}), gradients[variable].data()});
      }
      sent_before_finish = sent.size();
      clipper.Finish();
    }
  }

  std::vector<std::vector<float>> gradients;
  std::vector<int> sent;
  std::vector<std::vector<float>> sent_values;
  size_t sent_before_finish = 0;
};

TEST_CASE("gradients that are not clipped are sent as they come") {
  const Step step{Clipping()};
  CHECK(step.sent == std::vector<int>{2, 1, 0});
  CHECK(step.sent_before_finish == 3);
  CHECK(step.sent_values == std::vector<std::vector<float>>{{100, -100}, {0, 12}, {3, -4}});
}

TEST_CASE("gradients are clipped by value or norm before each is sent, statistics never") {
  Clipping clipping;
  clipping.set_value(3.5f);
  const Step by_value(clipping);
  CHECK(by_value.sent_before_finish == 3);
  CHECK(by_value.sent_values ==
        std::vector<std::vector<float>>{{100, -100}, {0, 3.5f}, {3, -3.5f}});
  clipping.set_norm(2.5f);
  const Step by_norm(clipping);
  CHECK(by_norm.sent_before_finish == 3);
  CHECK(by_norm.sent_values == std::vector<std::vector<float>>{{100, -100}, {0, 2.5f}, {1.5f, -2}});
}

TEST_CASE("gradients clipped by their common norm wait for each other, statistics do not") {
  Clipping clipping;
  clipping.set_global_norm(6.5f);  // of 13
  const Step step(clipping);
  CHECK(step.sent_before_finish == 1);
  CHECK(step.sent == std::vector<int>{2, 1, 0});
  CHECK(step.sent_values == std::vector<std::vector<float>>{{100, -100}, {0, 6}, {1.5f, -2}});
}

}  // namespace
}  // namespace lockstep::worker
