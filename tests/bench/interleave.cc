#include "tests/bench/interleave.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace lockstep::bench {

absl::StatusOr<Medians> Interleave(int rounds, const Measure& ours, const Measure& theirs) {
  std::vector<double> our_values;
  std::vector<double> their_values;
  for (int round = 0; round < rounds; ++round) {
    for (bool first : {true, false}) {
      const bool us = first == (round % 2 == 0);
      LOCKSTEP_ASSIGN_OR_RETURN(const double value, us ? ours() : theirs());
      (us ? our_values : their_values).push_back(value);
    }
  }
  return Medians{Median(our_values), Median(their_values)};
}

absl::StatusOr<double> MedianOf(int rounds, const Measure& measure) {
  std::vector<double> values;
  for (int round = 0; round < rounds; ++round) {
    LOCKSTEP_ASSIGN_OR_RETURN(const double value, measure());
    values.push_back(value);
  }
  return Median(values);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace lockstep::bench
