#include "chief/leases/evaluation_queue.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const WorkerIndex kA(0);

TEST_CASE("one evaluation runs at a time; one that comes meanwhile is left out unless it must be") {
  EvaluationQueue evaluator(4, 4, absl::Seconds(30));
  CHECK(evaluator.running() == nullptr);
  CHECK_FALSE(evaluator.LeaseOf(kA).has_value());
  CHECK(evaluator.Begin(GlobalStep(10), false));
  CHECK_FALSE(evaluator.Begin(GlobalStep(20), false));
  CHECK(evaluator.Begin(GlobalStep(30), true));
  evaluator.Assign({kA}, absl::ZeroDuration());
  const Lease first = evaluator.LeaseOf(kA).value();
  CHECK(first.version == GlobalStep(10));
  CHECK_FALSE(evaluator.TakeFinished().has_value());
  REQUIRE(evaluator.Report({first.id, 4, 2, 8.0}).ok());
  const EvaluationTotals totals = evaluator.TakeFinished().value();
  CHECK(totals.version == GlobalStep(10));
  CHECK(totals.loss == Approx(2));
  CHECK_FALSE(evaluator.TakeFinished().has_value());

  evaluator.Assign({kA}, absl::ZeroDuration());
  const Lease second = evaluator.LeaseOf(kA).value();
  CHECK(second.version == GlobalStep(30));
  CHECK(second.id > first.id);
  // The first one's result, repeated, is nothing to the second.
  REQUIRE(evaluator.Report({first.id, 4, 0, 9.0}).ok());
  CHECK_FALSE(evaluator.TakeFinished().has_value());
  REQUIRE(evaluator.Report({second.id, 4, 4, 0.0}).ok());
  CHECK(evaluator.TakeFinished()->accuracy == Approx(1));
  CHECK(evaluator.running() == nullptr);
}

TEST_CASE("an answer to a lease that was given out before the count began changes nothing") {
  EvaluationQueue evaluator(4, 4, absl::Seconds(30));
  evaluator.CountLeasesFrom(1000);
  REQUIRE(evaluator.Begin(GlobalStep(10), false));
  evaluator.Assign({kA}, absl::ZeroDuration());
  CHECK(evaluator.LeaseOf(kA)->id == 1000);
  REQUIRE(evaluator.Report({1, 4, 4, 0}).ok());
  REQUIRE(evaluator.Report({999, 4, 4, 0}).ok());
  CHECK_FALSE(evaluator.TakeFinished().has_value());
  REQUIRE(evaluator.Report({1000, 4, 1, 0}).ok());
  CHECK(evaluator.TakeFinished()->accuracy == Approx(0.25));
}

}  // namespace
}  // namespace lockstep::chief
