// Steps whose gradients are released in all workers at one instant, at multiples of a period that
// has to be long enough for everybody to be ready.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/interleave.h"

namespace lockstep::bench {

// Runs some steps with this period, in microseconds. The milliseconds of those that were released
// together.
using RunReleased = std::function<absl::StatusOr<std::vector<double>>(int64_t release_every)>;

// The median of a run. Runs again with twice the period while fewer than half of its `steps` were
// released together; the period that did is where the next run begins.
Measure MedianReleased(int64_t release_every, int steps, RunReleased run);

// A peer's program that takes workers, mebibytes, steps and the period (tests/bench/peers/steps.h).
RunReleased PeerSteps(std::string program, int workers, int64_t mebibytes, int steps);

// Runs a program whose only line of output is milliseconds.
absl::StatusOr<std::vector<double>> ReadMilliseconds(const std::vector<std::string>& argv);
// Their median; an error where there is none.
Measure MedianMilliseconds(std::vector<std::string> argv);

}  // namespace lockstep::bench
