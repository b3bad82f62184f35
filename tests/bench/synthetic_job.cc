#include "tests/bench/synthetic_job.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/local_job.h"
#include "tests/bench/released.h"

namespace lockstep::bench {
namespace {

std::string JobText(const SyntheticJob& job) {
  // The examples do not matter; there have to be some.
  const std::string data =
      std::filesystem::current_path().string() + "/deploy/examples/iris/train.csv";
  return absl::StrCat("model: 'model.textproto'\ndata { csv { train: '", data,
                      "' label_column: 'species' } }\n",
                      "batch_per_tower: 1\nmax_steps: ", kWarmUp + job.steps + 2,
                      "\noptimizer { sgd {} learning_rate { base: 0.01 } }\ntransport { ",
                      job.transport, " }\nlocal { ps: ", job.ps, " workers: ", job.workers, " }\n");
}

std::string ModelText(const SyntheticJob& job, int64_t release_every) {
  return absl::StrCat(
      "input_shape: [4]\nlayers { name: 'values' synthetic { variables: ", job.variables,
      " elements: ", job.elements, " release_every_us: ", release_every,
      " } }\nlayers { name: 'loss' softmax_cross_entropy {} }\n");
}

}  // namespace

absl::StatusOr<std::vector<std::vector<StepLine>>> RunSynthetic(const SyntheticJob& job,
                                                                int64_t release_every) {
  return RunForTimelines(JobText(job), ModelText(job, release_every), job.workers);
}

Measure ReleasedStep(const SyntheticJob& job, int64_t release_every) {
  return MedianReleased(release_every, job.steps,
                        [job](int64_t every) -> absl::StatusOr<std::vector<double>> {
                          LOCKSTEP_ASSIGN_OR_RETURN(const auto timelines, RunSynthetic(job, every));
                          return ReleasedSteps(timelines, every, kWarmUp);
                        });
}

}  // namespace lockstep::bench
