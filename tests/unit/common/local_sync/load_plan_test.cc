#include "common/local_sync/load_plan.h"

#include <catch2/catch.hpp>
#include <limits>
#include <set>
#include <string>

namespace lockstep {
namespace {

using Catch::Contains;

constexpr int64_t kNone = -1;  // no state inputs

absl::StatusOr<LoadPlan> Plan(int64_t rows, int64_t state_rows, int64_t most, int64_t towers) {
  LoadRequest request{
      .rows = rows, .state_rows = {}, .max_per_device_batch_size = most, .towers = towers};
  if (state_rows != kNone) request.state_rows = state_rows;
  return LoadPlan::Create(request);
}

std::string ErrorOf(int64_t rows, int64_t state_rows, int64_t most, int64_t towers) {
  const absl::StatusOr<LoadPlan> plan = Plan(rows, state_rows, most, towers);
  CHECK(absl::IsInvalidArgument(plan.status()));
  return std::string(plan.status().message());
}

TEST_CASE("a load is divided as LocalSyncParallelOptimizer divides it") {
  struct Row {
    int64_t rows, state_rows, most, towers;
    int64_t length, batch, kept, tuples, batches;
  };
  const Row rows[] = {
      {21, 7, 9, 2, 3, 9, 18, 9, 1},       {21, 7, 3, 2, 3, 3, 18, 9, 3},
      {22, 7, 9, 2, 3, 9, 18, 9, 1},       {130, kNone, 16, 4, 1, 16, 128, 32, 2},
      {10, kNone, 16, 4, 1, 2, 8, 2, 1},   {8192, kNone, 256, 4, 1, 256, 8192, 2048, 8},
      {4, kNone, 1, 4, 1, 1, 4, 1, 1},     {24, 4, 13, 1, 6, 12, 24, 24, 2},
      {100, kNone, 7, 1, 1, 7, 98, 98, 14}};
  for (const Row& row : rows) {
    CAPTURE(row.rows, row.state_rows, row.most, row.towers);
    const absl::StatusOr<LoadPlan> plan = Plan(row.rows, row.state_rows, row.most, row.towers);
    REQUIRE(plan.ok());
    CHECK(plan->max_seq_len() == row.length);
    CHECK(plan->per_device_batch_size() == row.batch);
    CHECK(plan->rows_kept() == row.kept);
    CHECK(plan->tuples_per_device() == row.tuples);
    CHECK(plan->num_batches() == row.batches);
  }
}

TEST_CASE("the largest batch may be as large as a number") {
  const absl::StatusOr<LoadPlan> plan = Plan(10, kNone, std::numeric_limits<int64_t>::max(), 4);
  REQUIRE(plan.ok());
  CHECK(plan->per_device_batch_size() == 2);
}

TEST_CASE("less than one sequence for each tower is refused in the original's words") {
  CHECK_THAT(ErrorOf(3, kNone, 16, 4),
             Contains("Must load at least 1 tuple sequence per device, got only 3 total."));
  CHECK_THAT(ErrorOf(9, 3, 16, 4),
             Contains("Must load at least 1 tuple sequence per device, got only 3 total."));
  CHECK_THAT(ErrorOf(0, kNone, 16, 1), Contains("got only 0 total."));
  CHECK_THAT(ErrorOf(0, 0, 16, 1), Contains("got only 0 total."));
}

TEST_CASE("a batch that is shorter than a sequence is refused by both lengths") {
  CHECK_THAT(ErrorOf(21, 7, 2, 2),
             Contains("max_per_device_batch_size: expected at least 3, the length of a sequence, "
                      "got 2. Remedy: "));
}

TEST_CASE("sequences without rows, and counts that cannot be, are refused") {
  CHECK_THAT(ErrorOf(6, 7, 9, 2), Contains("No data loaded?"));
  CHECK_THAT(ErrorOf(10, kNone, 0, 2),
             Contains("max_per_device_batch_size: expected at least 1, got 0"));
  CHECK_THAT(ErrorOf(10, kNone, 4, 0), Contains("towers: expected at least 1, got 0"));
  CHECK_THAT(ErrorOf(-1, kNone, 4, 1), Contains("expected 0 or more, got -1"));
}

TEST_CASE("towers take consecutive parts, and states those of the same sequences") {
  const LoadPlan plan = *Plan(21, 7, 3, 2);
  CHECK(plan.RowsOf(0) == RowSpan{0, 9});
  CHECK(plan.RowsOf(1) == RowSpan{9, 9});
  CHECK(plan.StateRowsOf(0) == RowSpan{0, 3});
  CHECK(plan.StateRowsOf(1) == RowSpan{3, 3});
  CHECK(Plan(10, kNone, 4, 2)->StateRowsOf(1) == RowSpan{});
}

TEST_CASE("a batch index is a place in tuples, rounded down to a whole sequence") {
  const LoadPlan plan = *Plan(21, 7, 3, 2);
  CHECK(plan.RowsAt(0) == RowSpan{0, 3});
  CHECK(plan.RowsAt(5) == RowSpan{3, 3});
  CHECK(plan.RowsAt(6) == RowSpan{6, 3});
  CHECK(plan.StateRowsAt(5) == RowSpan{1, 1});
  CHECK(plan.CheckIndex(0).ok());
  CHECK(plan.CheckIndex(6).ok());
  for (const int64_t index : {-1, 7, 9}) {
    const absl::Status status = plan.CheckIndex(index);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Contains("batch_index: expected 0 to 6"));
  }
}

TEST_CASE("disjoint indices cover each kept row of a tower once") {
  for (const auto& [rows, states, most, towers] :
       {std::tuple{21, 7, 3, 2}, {130, -1, 16, 4}, {97, -1, 5, 3}, {60, 12, 11, 2}}) {
    const LoadPlan plan = *Plan(rows, states, most, towers);
    std::set<int64_t> seen;
    for (int64_t batch = 0; batch < plan.num_batches(); ++batch) {
      const int64_t index = batch * plan.per_device_batch_size();
      REQUIRE(plan.CheckIndex(index).ok());
      const RowSpan span = plan.RowsAt(index);
      for (int64_t row = 0; row < span.count; ++row) CHECK(seen.insert(span.begin + row).second);
    }
    CHECK(static_cast<int64_t>(seen.size()) == plan.tuples_per_device());
    CHECK(*seen.rbegin() == plan.tuples_per_device() - 1);
  }
}

}  // namespace
}  // namespace lockstep
