#include "chief/leases/evaluation_queue.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const WorkerIndex kA(0);

TEST_CASE("one evaluation runs at a time; one that comes meanwhile is left out unless it must be") {
  EvaluationQueue evaluations(4, 4, absl::Seconds(30));
  CHECK(evaluations.running() == nullptr);
  CHECK_FALSE(evaluations.LeaseOf(kA).has_value());
  CHECK(evaluations.Begin(GlobalStep(10), false));
  CHECK_FALSE(evaluations.Begin(GlobalStep(20), false));
  CHECK(evaluations.Begin(GlobalStep(30), true));
  evaluations.Assign({kA}, absl::ZeroDuration());
  const Lease first = evaluations.LeaseOf(kA).value();
  CHECK(first.version == GlobalStep(10));
  CHECK_FALSE(evaluations.TakeFinished().has_value());
  REQUIRE(evaluations.Report(kA, {first.id, 4, 2, 8.0}).ok());
  const EvaluationTotals totals = evaluations.TakeFinished().value();
  CHECK(totals.version == GlobalStep(10));
  CHECK(totals.loss == Approx(2));
  CHECK_FALSE(evaluations.TakeFinished().has_value());

  evaluations.Assign({kA}, absl::ZeroDuration());
  const Lease second = evaluations.LeaseOf(kA).value();
  CHECK(second.version == GlobalStep(30));
  CHECK(second.id > first.id);
  // The first one's result, repeated, is nothing to the second.
  REQUIRE(evaluations.Report(kA, {first.id, 4, 0, 9.0}).ok());
  CHECK_FALSE(evaluations.TakeFinished().has_value());
  REQUIRE(evaluations.Report(kA, {second.id, 4, 4, 0.0}).ok());
  CHECK(evaluations.TakeFinished()->accuracy == Approx(1));
  CHECK(evaluations.running() == nullptr);
}

TEST_CASE("after an evaluation that is given up the next one begins, with leases of its own") {
  EvaluationQueue evaluations(4, 4, absl::Seconds(30));
  CHECK(evaluations.Begin(GlobalStep(10), false));
  CHECK(evaluations.Begin(GlobalStep(20), true));
  evaluations.Assign({kA}, absl::ZeroDuration());
  const Lease lost = evaluations.LeaseOf(kA).value();
  evaluations.Abandon();
  REQUIRE(evaluations.running() != nullptr);
  CHECK(evaluations.running()->version() == GlobalStep(20));
  CHECK_FALSE(evaluations.LeaseOf(kA).has_value());
  // What its worker has found all the same is nothing to the next one.
  REQUIRE(evaluations.Report(kA, {lost.id, 4, 4, 0}).ok());
  CHECK_FALSE(evaluations.TakeFinished().has_value());
  evaluations.Assign({kA}, absl::ZeroDuration());
  CHECK(evaluations.LeaseOf(kA)->id > lost.id);
  evaluations.Abandon();
  CHECK(evaluations.running() == nullptr);
}

TEST_CASE("an answer to a lease that was given out before the count began changes nothing") {
  EvaluationQueue evaluations(4, 4, absl::Seconds(30));
  evaluations.CountLeasesFrom(1000);
  REQUIRE(evaluations.Begin(GlobalStep(10), false));
  evaluations.Assign({kA}, absl::ZeroDuration());
  CHECK(evaluations.LeaseOf(kA)->id == 1000);
  REQUIRE(evaluations.Report(kA, {1, 4, 4, 0}).ok());
  REQUIRE(evaluations.Report(kA, {999, 4, 4, 0}).ok());
  CHECK_FALSE(evaluations.TakeFinished().has_value());
  REQUIRE(evaluations.Report(kA, {1000, 4, 1, 0}).ok());
  CHECK(evaluations.TakeFinished()->accuracy == Approx(0.25));
}

}  // namespace
}  // namespace lockstep::chief
