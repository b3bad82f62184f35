// The step of step_shm_2w with Adam while checkpoints are written, one after the other, beside the
// same step without them.
#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "tests/bench/interleave.h"
#include "tests/bench/released.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/synthetic_job.h"

namespace lockstep::bench {
namespace {

// Microseconds: about twice what a step takes.
constexpr int64_t kSavePeriod = 100'000;
constexpr int kStepsDuringSave = 40;
// A checkpoint of 192 MiB takes about as long as the steps between two of them.
constexpr int kSaveEvery = 4;
constexpr double kSaveTarget = 1 / 1.3;  // at most 1.3 times as long

// The median of a run. Adds all its steps to `all`.
Measure StepsOfSave(const SyntheticJob& job, std::vector<double>* all) {
  return MedianReleased(kSavePeriod, job.steps,
                        [job, all](int64_t every) -> absl::StatusOr<std::vector<double>> {
                          LOCKSTEP_ASSIGN_OR_RETURN(const auto timelines, RunSynthetic(job, every));
                          std::vector<double> steps = ReleasedSteps(timelines, every, kWarmUp);
                          std::ranges::copy(steps, std::back_inserter(*all));
                          return steps;
                        });
}

absl::StatusOr<RowResult> StepDuringSave(const BenchOptions& options, int workers) {
  SyntheticJob job;
  job.transport = "shared_memory: COPY";
  job.workers = workers;
  job.optimizer = "adam {}";
  job.steps = kStepsDuringSave;
  SyntheticJob saving = job;
  saving.save_every = kSaveEvery;
  std::vector<double> all_saving;
  std::vector<double> all_without;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Medians medians,
      Interleave(options.rounds, StepsOfSave(saving, &all_saving), StepsOfSave(job, &all_without)));
  RowResult result;
  result.value = medians.ours;
  result.unit = "ms";
  result.higher_is_better = false;
  result.target = kSaveTarget;
  result.peer = "the same without saving";
  result.peer_value = medians.theirs;
  result.note = absl::StrFormat(
      "64 MiB float32 in 16 variables, Adam, 1 ps, %d workers, shared memory, a checkpoint of "
      "192 MiB every %d steps, gradients released every %d ms; worst step %.1f ms, without saving "
      "%.1f ms; %s",
      workers, kSaveEvery, kSavePeriod / 1000, *std::ranges::max_element(all_saving),
      *std::ranges::max_element(all_without), options.network);
  return result;
}

}  // namespace

RowGroup StepDuringSaveRow(int workers) {
  return Alone(absl::StrCat("step_during_save_", workers, "w"),
               [workers](const BenchOptions& options) { return StepDuringSave(options, workers); });
}

}  // namespace lockstep::bench
