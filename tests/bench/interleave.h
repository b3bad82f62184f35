// Systems measured in turns, so that whatever else the machine does meets all of them.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::bench {

// One figure from one run.
using Measure = std::function<absl::StatusOr<double>()>;

// The median of `rounds` runs of each side, in their order; who goes first changes with the round.
// A side that fails has its error instead, and no more turns.
std::vector<absl::StatusOr<double>> TakeTurns(int rounds, const std::vector<Measure>& sides);

struct Medians {
  double ours = 0;
  double theirs = 0;
};

// Of two sides. The error of the first that fails.
absl::StatusOr<Medians> Interleave(int rounds, const Measure& ours, const Measure& theirs);

// Of one side alone, where there is no peer.
absl::StatusOr<double> MedianOf(int rounds, const Measure& measure);

// The middle one, or the mean of the middle two. `values` is not empty.
double Median(std::vector<double> values);

}  // namespace lockstep::bench
