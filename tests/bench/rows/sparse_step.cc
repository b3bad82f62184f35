// One synchronous step of which every worker touches some rows of a large table: beside copying
// these rows and their slots, and beside the same step of a smaller table.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/built.h"
#include "tests/bench/contest.h"
#include "tests/bench/released.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/synthetic_job.h"

namespace lockstep::bench {
namespace {

constexpr int kSparseWorkers = 4;
constexpr int64_t kLookups = 4096;
constexpr int64_t kWidth = 64;
constexpr int64_t kLargeTable = 10'000'000;
constexpr int64_t kSmallTable = 1'000'000;
// Microseconds: about twice what a step takes, its lookups included.
constexpr int64_t kSparseReleaseEvery = 60'000;
constexpr double kCopyTarget = 1 / 3.0;    // at most three times as long
constexpr double kTableTarget = 1 / 1.15;  // at most 1.15 times as long

struct SparseOptimizer {
  const char* name;
  const char* job;
  int slots;
};

constexpr SparseOptimizer kOptimizers[] = {
    {"adagrad", "adagrad {}", 1},
    {"lazy_adam", "adam { lazy: true }", 2},
};

Measure SparseStep(const SparseOptimizer& optimizer, int64_t rows) {
  SyntheticJob job;
  job.transport = "shared_memory: COPY";
  job.workers = kSparseWorkers;
  job.variables = 1;
  job.elements = kWidth;
  job.optimizer = optimizer.job;
  job.rows = rows;
  job.lookups = kLookups;
  return ReleasedStep(job, kSparseReleaseEvery);
}

Contest SparseContest(const BenchOptions& options) {
  Contest contest;
  contest.unit = "ms";
  contest.note = absl::StrFormat(
      "%d workers, %d rows of %d float32 each, of a table of %d rows, 1 ps, shared memory; %s",
      kSparseWorkers, kLookups, kWidth, kLargeTable, options.network);
  for (const SparseOptimizer& optimizer : kOptimizers) {
    const std::string name = optimizer.name;
    contest.sides.push_back(
        {name, absl::StrCat("Lockstep, ", name), SparseStep(optimizer, kLargeTable)});
    contest.sides.push_back({absl::StrCat(name, "_1m"),
                             absl::StrFormat("the same of a table of %d rows", kSmallTable),
                             SparseStep(optimizer, kSmallTable)});
    contest.sides.push_back(
        {absl::StrCat(name, "_copies"), "these rows and slots gathered and scattered",
         MedianMilliseconds({BuiltProgram("tests/bench/peers/row_copies"),
                             absl::StrCat(kSparseWorkers * kLookups), absl::StrCat(kLargeTable),
                             absl::StrCat(kWidth), absl::StrCat(1 + optimizer.slots)})});
    contest.comparisons.push_back({absl::StrCat("sparse_step_", name, "/row_copies"), name,
                                   absl::StrCat(name, "_copies"), kCopyTarget});
    contest.comparisons.push_back({absl::StrCat("sparse_step_", name, "/1m_rows"), name,
                                   absl::StrCat(name, "_1m"), kTableTarget});
  }
  return contest;
}

}  // namespace

RowGroup SparseStepRows() { return AsGroup(&SparseContest); }

}  // namespace lockstep::bench
