// One training job in real processes on this machine: a chief, ps and workers on free ports, by the
// commands that `lockstep up` gives them. All are killed when the object goes.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/config/cluster_spec.h"
#include "deploy/cli/local_cluster.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

// A small network for the digits. What it computes for an example depends on nothing but the
// example, so that a batch may be split in any way.
inline constexpr char kPlainModel[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "conv" conv2d { filters: 8 kernel: 3 } }
  layers { name: "relu" relu {} }
  layers { name: "pool" max_pool { window: 2 } }
  layers { name: "flat" flatten {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

// The `data` of a job that trains on the shipped digits; `more` goes inside.
std::string DigitsData(const std::string& more = "");

struct TrainingOptions {
  int workers = 1;
  int ps = 1;
  std::string model = kPlainModel;
  std::string job;      // the job file, but for `model`
  std::string restore;  // the chief's --restore; empty: none
};

class TrainingRun {
 public:
  // Starts the processes.
  explicit TrainingRun(const TrainingOptions& options);

  // Waits for the end and returns the chief's summary. Fails the test case, showing the output of
  // all processes, unless each exits with 0 within a minute.
  nlohmann::json Finish();

  const ClusterSpec& cluster() const { return cluster_; }
  Process& chief() { return *processes_.front(); }
  // A file or folder that the job names by this relative path.
  std::string Path(const std::string& name) const { return folder_.Path(name); }

 private:
  std::string Outputs() const;

  TemporaryFolder folder_;
  ClusterSpec cluster_;
  std::vector<deploy::Task> tasks_;
  std::vector<std::unique_ptr<Process>> processes_;  // of tasks_; the chief is the first
};

// The loss of every step.
std::vector<double> Losses(const nlohmann::json& summary);
// Of a whole run.
std::vector<double> LossesOf(const TrainingOptions& options);

// The largest |a - b| / |a| of two runs of the same length; infinite for other lengths.
double LargestRelativeDifference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace lockstep::test
