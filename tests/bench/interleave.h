// Two systems measured in turns, so that whatever else the machine does meets both.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::bench {

// One figure from one run.
using Measure = std::function<absl::StatusOr<double>()>;

struct Medians {
  double ours = 0;
  double theirs = 0;
};

// `rounds` runs of each; who goes first alternates. Stops at the first error.
absl::StatusOr<Medians> Interleave(int rounds, const Measure& ours, const Measure& theirs);

// Of one side alone, where there is no peer.
absl::StatusOr<double> MedianOf(int rounds, const Measure& measure);

// The middle one, or the mean of the middle two. `values` is not empty.
double Median(std::vector<double> values);

}  // namespace lockstep::bench
