// A row of the benchmark: one figure of ours beside the same figure of somebody else's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::bench {

struct BenchOptions {
  int rounds = 9;                 // runs of each side, taking turns
  double run_seconds = 0.3;       // aimed at by each run that can choose
  std::string peers_dir;          // where the peers that we build are
  std::string tensorflow_python;  // of an environment that has TensorFlow
  std::string torch_python;       // of an environment that has PyTorch
  std::string network;            // what whoever repeats it must know: "congestion control reno"
};

struct RowResult {
  std::string name;
  double value = 0;  // median of ours
  std::string unit;
  std::string peer;                  // what it is compared with, or why there is nothing
  std::optional<double> peer_value;  // median of theirs, from the same run; nullopt without a peer
  bool higher_is_better = true;
  std::optional<double> target = 1;  // of ratio; nullopt: the row is not judged
  std::string note;                  // what a reader must know to repeat it

  // How good we are against the peer: 2 is twice as good, whichever way the unit points.
  std::optional<double> ratio() const;
  // False without a peer: nothing was shown. nullopt without a target.
  std::optional<bool> met() const;
};

// Rows that are measured together, so that they share what they are compared with.
struct RowGroup {
  std::vector<std::string> names;
  // Measures those of the names that `wanted` holds and appends the results, in the order of the
  // names. An error, the first one: our own side of a row could not be measured, and that row is
  // left out.
  std::function<absl::Status(const BenchOptions& options, const std::vector<std::string>& wanted,
                             std::vector<RowResult>* results)>
      run;
};

// A group of one row.
RowGroup Alone(const std::string& name,
               std::function<absl::StatusOr<RowResult>(const BenchOptions&)> run);

}  // namespace lockstep::bench
