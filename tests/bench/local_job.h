// A whole job on a cluster of processes on this machine, started by `lockstep up`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/cli/summary.h"
#include "tests/bench/step_times.h"

namespace lockstep::bench {

struct JobFiles {
  std::string job;
  std::string model;
  std::string data = "";  // data.csv, if there is any
};

// Runs the job of these files, with these flags of `lockstep up`, to its end, in a folder that is
// gone afterwards. An error holds the last lines of what it printed. From the main thread: the
// kernel ends the job with the caller's.
absl::StatusOr<deploy::Summary> RunLocalJob(const JobFiles& files,
                                            const std::vector<std::string>& flags = {});

// The same for the timelines of its workers, of which there are this many.
absl::StatusOr<std::vector<std::vector<StepLine>>> RunForTimelines(
    const JobFiles& files, int workers, const std::vector<std::string>& flags = {});

}  // namespace lockstep::bench
