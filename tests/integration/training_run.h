// Whole runs of a job on a cluster of real processes, and what came of them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/cluster.h"

namespace lockstep::test {

// A network for the digits. What it computes for an example depends on nothing but the example, so
// that a batch may be split in any way.
inline constexpr char kPlainModel[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "conv" conv2d { filters: 8 kernel: 3 } }
  layers { name: "relu" relu {} }
  layers { name: "pool" max_pool { window: 2 } }
  layers { name: "flat" flatten {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

// Waits until every process of a cluster that was started has ended, and returns the chief's
// summary. Fails the test case, with all logs, unless each exits with 0 within a minute.
nlohmann::json Finish(Cluster& cluster);

// The loss of every step of a run that has recorded them.
std::vector<double> Losses(const nlohmann::json& summary);

// Of a run on a new cluster.
std::vector<double> LossesOf(int ps, int workers, const JobText& job,
                             const std::vector<std::string>& chief_flags = {});

// The CRC of every tensor of a checkpoint, by name.
std::map<std::string, std::string> TensorsOf(const std::string& checkpoint);

// What `lockstep evaluate` says about a checkpoint.
nlohmann::json EvaluateAlone(const std::string& checkpoint);

// The largest |a - b| / |a| of two runs of the same length; infinite for other lengths.
double LargestRelativeDifference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace lockstep::test
