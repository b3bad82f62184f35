#include "tests/bench/synthetic_job.h"

#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/local_job.h"
#include "tests/bench/released.h"

namespace lockstep::bench {
namespace {

int StepsOf(const SyntheticJob& job) { return kWarmUp + job.steps + 2; }

// One example for each step of each worker: row indices spread over the table, and one of two
// classes.
std::string Lookups(const SyntheticJob& job) {
  std::string csv;
  for (int64_t i = 0; i < job.lookups; ++i) absl::StrAppend(&csv, "row_", i, ",");
  absl::StrAppend(&csv, "label\n");
  std::mt19937_64 random(1);
  const int64_t stretch = job.rows / job.lookups;  // of rows, for each lookup
  for (int example = 0; example < job.workers * StepsOf(job); ++example) {
    for (int64_t i = 0; i < job.lookups; ++i) {
      absl::StrAppend(&csv, i * stretch + static_cast<int64_t>(random() % stretch), ",");
    }
    absl::StrAppend(&csv, example % 2, "\n");
  }
  return csv;
}

std::string DataText(const SyntheticJob& job) {
  if (job.rows > 0) return "data { csv { train: 'data.csv' label_column: 'label' } }\n";
  // The examples do not matter; there have to be some.
  return absl::StrCat("data { csv { train: '", std::filesystem::current_path().string(),
                      "/deploy/examples/iris/train.csv' label_column: 'species' } }\n");
}

std::string CheckpointText(const SyntheticJob& job) {
  if (job.save_every == 0) return "";
  return absl::StrCat("checkpoint { folder: 'checkpoints' every_steps: ", job.save_every, " }\n");
}

JobFiles FilesOf(const SyntheticJob& job, int64_t release_every) {
  JobFiles files;
  files.job = absl::StrCat(
      "model: 'model.textproto'\n", DataText(job), "batch_per_tower: 1\nmax_steps: ", StepsOf(job),
      "\noptimizer { ", job.optimizer, " learning_rate { base: 0.01 } }\nstrategy { ", job.strategy,
      " }\nsync { ps_replicas: ", job.copies ? 1 : 0, " }\ntransport { ", job.transport,
      " }\nlocal { ps: ", job.ps, " workers: ", job.workers, " }\n", CheckpointText(job));
  files.model = absl::StrCat("input_shape: [", job.rows > 0 ? job.lookups : 4,
                             "]\nlayers { name: 'values' synthetic { variables: ", job.variables,
                             " elements: ", job.elements, " rows: ", job.rows,
                             " release_every_us: ", release_every,
                             " } }\nlayers { name: 'loss' softmax_cross_entropy {} }\n");
  if (job.rows > 0) files.data = Lookups(job);
  return files;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<StepLine>>> RunSynthetic(const SyntheticJob& job,
                                                                int64_t release_every) {
  return RunForTimelines(FilesOf(job, release_every), job.workers, job.flags);
}

Measure ReleasedStep(const SyntheticJob& job, int64_t release_every) {
  return MedianReleased(release_every, job.steps,
                        [job](int64_t every) -> absl::StatusOr<std::vector<double>> {
                          LOCKSTEP_ASSIGN_OR_RETURN(const auto timelines, RunSynthetic(job, every));
                          return ReleasedSteps(timelines, every, kWarmUp);
                        });
}

}  // namespace lockstep::bench
