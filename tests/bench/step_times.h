// Computes the times of synchronous steps from the timelines of all workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::bench {

// A line of a worker's timeline: the step and, in microseconds, the phases that are used here.
struct StepLine {
  int64_t step = 0;
  int64_t token = 0;
  int64_t variables = 0;
  int64_t first_gradient = 0;
  int64_t last_gradient = 0;
  int64_t pushed = 0;
};

// DATA_LOSS for a file that is no timeline.
absl::StatusOr<std::vector<StepLine>> ReadTimeline(const std::string& path);

// Returns the milliseconds from the release of a step's gradients until the slowest worker has all
// variables of the next version. All workers release at one multiple of `release_every`
// microseconds. Leaves out the first `warm_up` steps, and those whose workers were released apart.
std::vector<double> ReleasedSteps(const std::vector<std::vector<StepLine>>& workers,
                                  int64_t release_every, int64_t warm_up);

// Returns the average milliseconds of a whole step, from token to token, after the first `warm_up`.
absl::StatusOr<double> WholeStep(const std::vector<StepLine>& worker, int64_t warm_up);

// Returns the milliseconds from a worker's last gradient until all of them were judged: the rest of
// the push after the backward pass. The median over all steps after the first `warm_up`.
absl::StatusOr<double> PushAfterBackward(const std::vector<std::vector<StepLine>>& workers,
                                         int64_t warm_up);

}  // namespace lockstep::bench
