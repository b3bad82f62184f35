// Jobs whose gradients are written, not computed: what is measured is their way and that of the
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/interleave.h"
#include "tests/bench/step_times.h"

namespace lockstep::bench {

struct SyntheticJob {
  std::string transport;  // the job's, such as "shared_memory: OFF"
  int workers = 2;
  int ps = 1;
  bool copies = false;  // of each ps's shard at the next one (sync.ps_replicas)
  int64_t variables = 16;
  int64_t elements = 1 << 20;  // of each, float32; of tables, of each row
  int steps = 10;
  std::string optimizer = "sgd {}";
  std::string strategy = "parameter_server {}";
  std::vector<std::string> flags;  // of `lockstep up`
  int save_every = 0;              // steps from one checkpoint to the next; 0: none is written
  // The variables are tables of so many rows, of which every worker looks up `lookups` in each
  // step, others each time; 0: they are none.
  int64_t rows = 0;
  int64_t lookups = 0;
};

// Steps of every run that are not measured: memory is touched, connections are up to speed.
inline constexpr int kWarmUp = 3;

// Runs the job on a cluster of processes, every worker in every step, gradients released at
// multiples of `release_every` microseconds (0: at once). The timelines of its workers.
absl::StatusOr<std::vector<std::vector<StepLine>>> RunSynthetic(const SyntheticJob& job,
                                                                int64_t release_every);

// The median of ReleasedSteps of such a run, with this period or a multiple (MedianReleased).
Measure ReleasedStep(const SyntheticJob& job, int64_t release_every);

}  // namespace lockstep::bench
