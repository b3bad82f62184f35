#include "chief/leases/evaluation.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace lockstep::chief {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
const WorkerIndex kA(0), kB(1), kC(2);

Evaluation Make(int64_t examples, int64_t range) {
  return Evaluation(GlobalStep(7), examples, range, 100, kPatience);
}

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

LeaseResult AllCorrect(const Lease& lease) {
  return {.lease = lease.id,
          .examples = lease.end - lease.begin,
          .correct = lease.end - lease.begin,
          .loss_sum = 0.5 * static_cast<double>(lease.end - lease.begin)};
}

TEST_CASE("the ranges cover the test set once, one lease per worker at a time") {
  Evaluation evaluation = Make(10, 4);
  evaluation.Assign({kA, kB}, At(0));
  CHECK(evaluation.LeaseOf(kA) == Lease{100, GlobalStep(7), 0, 4});
  CHECK(evaluation.LeaseOf(kB) == Lease{101, GlobalStep(7), 4, 8});
  CHECK(evaluation.LeaseOf(kC) == std::nullopt);
  REQUIRE(evaluation.Report(kA, AllCorrect(*evaluation.LeaseOf(kA))).ok());
  CHECK(evaluation.LeaseOf(kA) == std::nullopt);
  evaluation.Assign({kA, kB}, At(1));
  CHECK(evaluation.LeaseOf(kA) == Lease{102, GlobalStep(7), 8, 10});
  CHECK_FALSE(evaluation.done());
  REQUIRE(evaluation.Report(kA, {102, 2, 1, 4.0}).ok());
  REQUIRE(evaluation.Report(kB, {101, 4, 0, 8.0}).ok());
  REQUIRE(evaluation.done());
  const EvaluationTotals totals = evaluation.Totals();
  CHECK(totals.version == GlobalStep(7));
  CHECK(totals.examples == 10);
  CHECK(totals.accuracy == Approx(0.5));
  CHECK(totals.loss == Approx(1.4));
}

TEST_CASE("a range moves to another worker when its holder dies") {
  Evaluation evaluation = Make(8, 4);
  evaluation.Assign({kA, kB}, At(0));
  REQUIRE(evaluation.Report(kB, AllCorrect(*evaluation.LeaseOf(kB))).ok());
  evaluation.Assign({kB}, At(1));
  CHECK(evaluation.LeaseOf(kA) == std::nullopt);
  const Lease moved = evaluation.LeaseOf(kB).value();
  CHECK(moved.begin == 0);
  CHECK(moved.id == 102);
  REQUIRE(evaluation.Report(kB, AllCorrect(moved)).ok());
  CHECK(evaluation.done());
}

TEST_CASE("a slow range is given to an idle worker, later each time, and the first result counts") {
  Evaluation evaluation = Make(4, 4);
  evaluation.Assign({kA, kB}, At(0));
  CHECK(evaluation.LeaseOf(kB) == std::nullopt);
  evaluation.Assign({kA, kB}, At(30));
  CHECK(evaluation.LeaseOf(kA).has_value());
  evaluation.Assign({kA, kB}, At(31));
  CHECK(evaluation.LeaseOf(kA) == std::nullopt);
  CHECK(evaluation.LeaseOf(kB)->id == 101);
  evaluation.Assign({kA, kB}, At(62));
  CHECK(evaluation.LeaseOf(kB)->id == 101);
  evaluation.Assign({kA, kB}, At(92));
  CHECK(evaluation.LeaseOf(kA)->id == 102);
  REQUIRE(evaluation.Report(kA, {100, 4, 3, 2.0}).ok());
  REQUIRE(evaluation.done());
  REQUIRE(evaluation.Report(kB, {101, 4, 0, 9.0}).ok());
  CHECK(evaluation.Totals().accuracy == Approx(0.75));
  CHECK(evaluation.Totals().loss == Approx(0.5));
}

TEST_CASE("a repeated result and one of another evaluation change nothing") {
  Evaluation evaluation = Make(8, 4);
  evaluation.Assign({kA}, At(0));
  REQUIRE(evaluation.Report(kA, {100, 4, 4, 1.0}).ok());
  REQUIRE(evaluation.Report(kA, {100, 4, 0, 9.0}).ok());
  REQUIRE(evaluation.Report(kA, {99, 4, 0, 9.0}).ok());
  REQUIRE(evaluation.Report(kA, {101, 4, 0, 9.0}).ok());
  CHECK(evaluation.ranges_done() == 1);
}

TEST_CASE("a worker reports its own leases alone") {
  Evaluation evaluation = Make(4, 4);
  evaluation.Assign({kA, kB}, At(0));
  REQUIRE(evaluation.LeaseOf(kA)->id == 100);
  REQUIRE(evaluation.Report(kB, {100, 4, 0, 9.0}).ok());
  REQUIRE(evaluation.Report(kB, {100, 400, 0, 9.0}).ok());
  CHECK_FALSE(evaluation.done());
  CHECK(evaluation.LeaseOf(kA)->id == 100);
  REQUIRE(evaluation.Report(kA, {100, 4, 3, 2.0}).ok());
  REQUIRE(evaluation.done());
  CHECK(evaluation.Totals().accuracy == Approx(0.75));
}

TEST_CASE("a result counts that comes when its range has moved to another worker") {
  Evaluation evaluation = Make(4, 4);
  evaluation.Assign({kA}, At(0));
  evaluation.Assign({kB}, At(1));
  REQUIRE(evaluation.LeaseOf(kB)->id == 101);
  REQUIRE(evaluation.Report(kB, {100, 4, 0, 9.0}).ok());
  CHECK_FALSE(evaluation.done());
  REQUIRE(evaluation.Report(kA, {100, 4, 3, 2.0}).ok());
  CHECK(evaluation.done());
}

TEST_CASE("counts that do not fit the range are refused") {
  Evaluation evaluation = Make(10, 4);
  evaluation.Assign({kA}, At(0));
  for (const auto& [examples, correct] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 1}, {5, 1}, {4, 5}, {4, -1}, {0, 0}}) {
    const absl::Status status = evaluation.Report(kA, {100, examples, correct, 1.0});
    CAPTURE(examples, correct, status.ToString());
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(evaluation.ranges_done() == 0);
}

TEST_CASE("without live workers nothing is leased, and it goes on when one comes") {
  Evaluation evaluation = Make(4, 4);
  evaluation.Assign({}, At(0));
  CHECK(evaluation.LeaseOf(kA) == std::nullopt);
  evaluation.Assign({kC}, At(100));
  CHECK(evaluation.LeaseOf(kC).has_value());
}

TEST_CASE(
    "whatever dies and repeats, every example is counted once and the sum has the same bits") {
  const int64_t kExamples = 1000, kRange = 37;
  // A function of the example alone, with sums that depend on the order.
  const auto result_of = [](const Lease& lease) {
    LeaseResult result{.lease = lease.id, .examples = lease.end - lease.begin};
    for (int64_t i = lease.begin; i < lease.end; ++i) {
      result.correct += i % 3 == 0;
      result.loss_sum += 1.0 / static_cast<double>(i + 1);
    }
    return result;
  };
  std::set<double> losses;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Evaluation evaluation(GlobalStep(1), kExamples, kRange, 1 + seed, kPatience);
    std::map<uint64_t, std::pair<WorkerIndex, LeaseResult>> out;
    double now = 0;
    while (!evaluation.done()) {
      std::vector<WorkerIndex> live;
      for (uint32_t worker = 0; worker < 4; ++worker) {
        if (random() % 3 != 0) live.push_back(WorkerIndex(worker));
      }
      evaluation.Assign(live, At(now += random() % 40));
      for (WorkerIndex worker : live) {
        const auto lease = evaluation.LeaseOf(worker);
        if (lease.has_value()) out.try_emplace(lease->id, worker, result_of(*lease));
      }
      for (const auto& [id, reported] : out) {
        const auto& [worker, result] = reported;
        if (random() % 2 == 0) REQUIRE(evaluation.Report(worker, result).ok());
      }
    }
    const EvaluationTotals totals = evaluation.Totals();
    CHECK(totals.examples == kExamples);
    CHECK(totals.accuracy == Approx(0.334));
    losses.insert(totals.loss);
  }
  CHECK(losses.size() == 1);
}

TEST_CASE("a lease holds whole batches, a few leases per worker, within bounds") {
  CHECK(RangeSize(10000, 3, 256) == 1024);
  CHECK(RangeSize(360, 3, 256) == 256);
  CHECK(RangeSize(360, 3, 1000) == 360);
  CHECK(RangeSize(1000000, 2, 100) == 2100);
  CHECK(RangeSize(100, 2, 10) == 260);
  CHECK(RangeSize(5, 0, INT64_MAX) == 5);
}

TEST_CASE("accuracy and loss are means over the labels, of which an example may have several") {
  Evaluation evaluation(GlobalStep(7), 10, 10, 1, kPatience, /*labels_per_example=*/8);
  evaluation.Assign({kA}, At(0));
  CHECK_FALSE(evaluation.Report(kA, {.lease = 1, .examples = 10, .correct = 81}).ok());
  REQUIRE(evaluation.Report(kA, {.lease = 1, .examples = 10, .correct = 20, .loss_sum = 120}).ok());
  CHECK(evaluation.Totals().examples == 10);
  CHECK(evaluation.Totals().accuracy == 0.25);
  CHECK(evaluation.Totals().loss == 1.5);
}

}  // namespace
}  // namespace lockstep::chief
