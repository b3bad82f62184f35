// How long synchronous steps took, from the timelines of all workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::bench {

// A line of a worker's timeline: the step and, in microseconds, what this needs of its phases.
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

// Milliseconds from the moment when the gradients of a step are released, in all workers at one
// multiple of `release_every` microseconds, until the slowest worker has all variables of the next
// version. The first `warm_up` steps are left out, and those whose workers were released apart.
std::vector<double> ReleasedSteps(const std::vector<std::vector<StepLine>>& workers,
                                  int64_t release_every, int64_t warm_up);

// Milliseconds of a whole step, on average, after the first `warm_up`: from token to token.
absl::StatusOr<double> WholeStep(const std::vector<StepLine>& worker, int64_t warm_up);

// Milliseconds from a worker's last gradient until all of them were judged: what is left of the
// push when the backward pass is over. The median over all steps after the first `warm_up`.
absl::StatusOr<double> PushAfterBackward(const std::vector<std::vector<StepLine>>& workers,
                                         int64_t warm_up);

}  // namespace lockstep::bench
