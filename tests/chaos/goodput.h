// Goodput is the share of its rate that a job keeps while one process is killed now and then.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "tests/chaos/chaos_job.h"
#include "tests/chaos/chaos_run.h"

namespace lockstep::test {

struct Goodput {
  absl::Duration time;     // each: without kills, and with them
  int64_t calm_steps = 0;  // without kills
  int64_t steps = 0;       // with kills; steps that a checkpoint takes back do not count
  int kills = 0;

  double share() const {
    return calm_steps > 0 ? static_cast<double>(steps) / static_cast<double>(calm_steps) : 0;
  }
  // For a terminal.
  std::string Line() const;
  // { "seconds", "calm_steps", "steps", "kills", "goodput" }
  std::string Json() const;
};

struct GoodputOptions {
  absl::Duration time;    // without kills, and then with them
  absl::Duration period;  // one kill -9 in each, at a random moment
  uint64_t seed = 1;      // of moments and victims: each process once before any comes again
};

// Returns false if something is wrong; `run` reports it. `say` gets a line for each kill.
bool MeasureGoodput(ChaosJob* job, ChaosRun* run, const GoodputOptions& options,
                    const std::function<void(const std::string&)>& say, Goodput* goodput);

}  // namespace lockstep::test
