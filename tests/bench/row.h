// A row of the benchmark: one figure of ours beside the same figure of somebody else's.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep::bench {

struct BenchOptions {
  int rounds = 9;            // runs of each side, taking turns
  double run_seconds = 0.3;  // aimed at by each run
};

struct RowResult {
  double value = 0;  // median of ours
  std::string unit;
  std::string peer;                  // what it is compared with, or why there is nothing
  std::optional<double> peer_value;  // median of theirs, from the same run; nullopt without a peer
  bool higher_is_better = true;
  double target = 1;  // of ratio
  std::string note;   // what a reader must know to repeat it

  // How good we are against the peer: 2 is twice as good, whichever way the unit points.
  std::optional<double> ratio() const;
  // False without a peer: nothing was shown.
  bool met() const;
};

struct Row {
  const char* name;
  // An error means that our own side could not be measured.
  absl::StatusOr<RowResult> (*run)(const BenchOptions& options);
};

}  // namespace lockstep::bench
