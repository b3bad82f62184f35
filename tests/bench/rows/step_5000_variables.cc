// The step of step_shm_2w with its bytes split into 5,000 variables: what a variable costs beyond
// its bytes.
#include "absl/strings/str_format.h"
#include "tests/bench/contest.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/synthetic_job.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kManyVariables = 5000;
constexpr int64_t kManyElements = (int64_t{16} << 20) / kManyVariables;  // 64 MiB in all
// Microseconds: as in step_shm_2w.
constexpr int64_t kManyReleaseEvery = 100'000;
constexpr double kManyTarget = 0.5;  // a step takes at most twice as long

Contest ManyVariablesContest(const BenchOptions& options) {
  SyntheticJob few;
  few.transport = "shared_memory: COPY";
  SyntheticJob many = few;
  many.variables = kManyVariables;
  many.elements = kManyElements;
  Contest contest;
  contest.unit = "ms";
  contest.note =
      absl::StrFormat("%d variables of %d float32, SGD, 1 ps, %d workers, shared memory; %s",
                      many.variables, many.elements, many.workers, options.network);
  contest.sides = {
      {"many", "", ReleasedStep(many, kManyReleaseEvery)},
      {"few", "step_shm_2w: 64 MiB in 16 variables", ReleasedStep(few, kManyReleaseEvery)}};
  contest.comparisons = {{"step_5000_variables_shm_2w/step_shm_2w", "many", "few", kManyTarget}};
  return contest;
}

}  // namespace

RowGroup ManyVariablesRows() { return AsGroup(&ManyVariablesContest); }

}  // namespace lockstep::bench
