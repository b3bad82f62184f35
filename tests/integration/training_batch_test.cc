// Synchronous training is large-batch training: however a batch is split, the steps are the same.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr double kTolerance = 1e-4;

JobText Job(const std::string& more = "") {
  return {.global_batch = 24,
          .max_steps = 50,
          .optimizer = "momentum { momentum: 0.9 } learning_rate { base: 0.1 }",
          .model = kPlainModel,
          .more = "seed: 7 " + more};
}

TEST_CASE("two and three workers train as one with the whole batch does") {
  const std::vector<double> one = LossesOf(1, 1, Job());
  REQUIRE(one.size() == 50);
  CHECK(one.back() < one.front() / 4);
  CHECK(LargestRelativeDifference(one, LossesOf(1, 2, Job())) < kTolerance);
  CHECK(LargestRelativeDifference(one, LossesOf(1, 3, Job())) < kTolerance);
}

TEST_CASE("two towers of one worker train as two workers do") {
  CHECK(LargestRelativeDifference(LossesOf(1, 2, Job()), LossesOf(1, 1, Job("towers: 2"))) <
        kTolerance);
}

TEST_CASE("neither the number of ps nor the order of arrival changes a bit") {
  const std::vector<double> one_ps = LossesOf(1, 3, Job());
  CHECK(one_ps == LossesOf(2, 3, Job()));
  CHECK(one_ps == LossesOf(3, 3, Job()));
}

}  // namespace
}  // namespace lockstep::test
