#include "tests/bench/interleave.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace lockstep::bench {

std::vector<absl::StatusOr<double>> TakeTurns(int rounds, const std::vector<Measure>& sides) {
  std::vector<std::vector<double>> values(sides.size());
  std::vector<absl::Status> ends(sides.size());
  for (size_t round = 0; round < static_cast<size_t>(rounds); ++round) {
    for (size_t turn = 0; turn < sides.size(); ++turn) {
      const size_t side = (round + turn) % sides.size();
      if (!ends[side].ok()) continue;
      const absl::StatusOr<double> value = sides[side]();
      ends[side] = value.status();
      if (value.ok()) values[side].push_back(*value);
    }
  }
  std::vector<absl::StatusOr<double>> medians;
  for (size_t side = 0; side < sides.size(); ++side) {
    medians.push_back(ends[side].ok() ? absl::StatusOr<double>(Median(values[side])) : ends[side]);
  }
  return medians;
}

absl::StatusOr<Medians> Interleave(int rounds, const Measure& ours, const Measure& theirs) {
  const std::vector<absl::StatusOr<double>> medians = TakeTurns(rounds, {ours, theirs});
  LOCKSTEP_RETURN_IF_ERROR(medians[0].status());
  LOCKSTEP_RETURN_IF_ERROR(medians[1].status());
  return Medians{*medians[0], *medians[1]};
}

absl::StatusOr<double> MedianOf(int rounds, const Measure& measure) {
  return TakeTurns(rounds, {measure})[0];
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace lockstep::bench
