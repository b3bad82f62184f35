// Kinds of simulated jobs: random options, random faults, and how the outcome is judged.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/sim/sim_run.h"

namespace lockstep::sim {

struct Scenario {
  absl::string_view name;
  // Simulates the job of a seed. Returns what was wrong, empty when nothing was. What happened is
  // appended to the run's trace.
  std::string (*simulate)(uint64_t seed, SimRun* run);
};

std::span<const Scenario> Scenarios();
// CHECK-fails on a name that no scenario has.
const Scenario& FindScenario(absl::string_view name);

// A case of `./lockstep test --sim`: one number names the scenario and the seed of its job.
struct Case {
  const Scenario* scenario = nullptr;
  uint64_t seed = 0;
};
// seed % (number of scenarios) is the scenario.
Case CaseOf(uint64_t seed);

// Simulates a case, in a run that is new: what was wrong, with the scenario's name; empty when
// nothing was.
std::string Simulate(const Case& which, SimRun* run);

// The command that simulates the case of this seed again.
std::string ReplayCommand(uint64_t seed);

// Simulates the jobs of the seeds 0 .. seeds - 1 of a scenario; under a sanitizer the first
// twentieth of them. The first 5 wrong ones are printed with the command that replays them, and end
// it.
bool AllAreRight(absl::string_view scenario, uint64_t seeds);

}  // namespace lockstep::sim
