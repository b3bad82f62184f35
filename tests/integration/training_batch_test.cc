// Synchronous training is large-batch training: however a batch is split, the steps are the same.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr double kTolerance = 1e-4;

TrainingOptions Job(int workers, int ps, const std::string& more = "") {
  return {.workers = workers,
          .ps = ps,
          .job = DigitsData() +
                 "global_batch: 24 max_steps: 50 seed: 7\n"
                 "optimizer { momentum { momentum: 0.9 } learning_rate { base: 0.1 } }\n" +
                 more};
}

TEST_CASE("two and three workers train as one with the whole batch does") {
  const std::vector<double> one = LossesOf(Job(1, 1));
  REQUIRE(one.size() == 50);
  CHECK(one.back() < one.front() / 4);
  CHECK(LargestRelativeDifference(one, LossesOf(Job(2, 1))) < kTolerance);
  CHECK(LargestRelativeDifference(one, LossesOf(Job(3, 1))) < kTolerance);
}

TEST_CASE("two towers of one worker train as two workers do") {
  CHECK(LargestRelativeDifference(LossesOf(Job(2, 1)), LossesOf(Job(1, 1, "towers: 2"))) <
        kTolerance);
}

TEST_CASE("neither the number of ps nor the order of arrival changes a bit") {
  const std::vector<double> one_ps = LossesOf(Job(3, 1));
  CHECK(one_ps == LossesOf(Job(3, 2)));
  CHECK(one_ps == LossesOf(Job(3, 3)));
}

}  // namespace
}  // namespace lockstep::test
