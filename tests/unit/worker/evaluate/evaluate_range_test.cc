#include "worker/evaluate/evaluate_range.h"

#include <catch2/catch.hpp>

#include "tests/unit/worker/evaluate/fakes.h"

namespace lockstep::worker {
namespace {

using test::CountingTestSet;
using test::CountingTower;

TEST_CASE("sums over a range do not depend on the batch") {
  const CountingTestSet examples(100, true);
  for (const int64_t batch : {1, 7, 50, 90, 91, 1000}) {
    CAPTURE(batch);
    CountingTower right, wrong(1);
    const auto result = EvaluateRange(&right, examples, {}, 10, 100, batch);
    REQUIRE(result.ok());
    CHECK(result->examples == 90);
    CHECK(result->correct == 90);
    CHECK(result->loss_sum == (10 + 99) * 90 / 2);
    CHECK(EvaluateRange(&wrong, examples, {}, 10, 100, batch)->correct == 0);
    CHECK(*std::max_element(right.batches.begin(), right.batches.end()) <= batch);
  }
}

TEST_CASE("an empty range is nothing and a range outside is an error") {
  const CountingTestSet examples(10, true);
  CountingTower tower;
  CHECK(EvaluateRange(&tower, examples, {}, 4, 4, 2)->examples == 0);
  CHECK(tower.batches.empty());
  CHECK_FALSE(EvaluateRange(&tower, examples, {}, 8, 11, 2).ok());
}

}  // namespace
}  // namespace lockstep::worker
