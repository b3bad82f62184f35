#include "tests/sim/scenarios/scenario.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

// A sanitizer makes a job 10 to 30 times as slow, and what it finds hardly depends on the seed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kShareOfSeeds = 20;
#else
constexpr uint64_t kShareOfSeeds = 1;
#endif

constexpr int kMostPrinted = 5;

constexpr Scenario kScenarios[] = {
    {"fifo", SimulateFifo},
    {"per_replica", SimulatePerReplica},
    {"asynchronous", SimulateAsynchronous},
    {"asynchronous_deaths", SimulateAsynchronousDeaths},
    {"worker_deaths", SimulateWorkerDeaths},
    {"wait", SimulateWait},
    {"shrink", SimulateShrink},
    {"shrink_views", SimulateShrinkViews},
    {"abort", SimulateAbort},
    {"elastic", SimulateElastic},
    {"replicated_deaths", SimulateReplicatedDeaths},
    {"replicated_disaster", SimulateReplicatedDisaster},
    {"replicated_ends", SimulateReplicatedEnds},
    {"chief_deaths", SimulateChiefDeaths},
    {"chief_deaths_fifo", SimulateChiefDeathsFifo},
    {"chief_deaths_asynchronous", SimulateChiefDeathsAsynchronous},
    {"chief_terminations", SimulateChiefTerminations},
    {"chief_terminations_asynchronous", SimulateChiefTerminationsAsynchronous},
    {"standbys", SimulateStandbys},
    {"standbys_cut", SimulateStandbysCut},
    {"standbys_late_worker", SimulateStandbysLateWorker},
    {"ps_deaths", SimulatePsDeaths},
    {"copies", SimulateCopies},
    {"copy_deaths", SimulateCopyDeaths},
    {"copy_cuts", SimulateCopyCuts},
    {"copy_disasters", SimulateCopyDisasters},
    {"copy_standbys", SimulateCopyStandbys},
    {"copy_starts", SimulateCopyStarts},
    {"copy_stops", SimulateCopyStops},
    {"ps_stops", SimulatePsStops},
    {"large_variables", SimulateLargeVariables},
    {"rough_network", SimulateRoughNetwork},
    {"rough_network_fifo", SimulateRoughNetworkFifo},
    {"rough_network_asynchronous", SimulateRoughNetworkAsynchronous},
    {"collectives", SimulateCollectives},
    {"collective_death", SimulateCollectiveDeath},
    {"collective_hang", SimulateCollectiveHang},
};

}  // namespace

std::span<const Scenario> Scenarios() { return kScenarios; }

Case CaseOf(uint64_t seed) {
  return {&kScenarios[seed % std::size(kScenarios)], seed / std::size(kScenarios)};
}

std::string Simulate(const Case& which, SimRun* run) {
  std::string wrong = which.scenario->simulate(which.seed, run);
  if (!run->trace.violation().empty()) wrong = run->trace.violation();
  return wrong.empty() ? "" : absl::StrCat(which.scenario->name, ": ", wrong);
}

std::string ReplayCommand(uint64_t seed) {
  return absl::StrCat("./lockstep test --sim --seed=", seed);
}

const Scenario& FindScenario(absl::string_view name) {
  const Scenario* const found = std::ranges::find(kScenarios, name, &Scenario::name);
  LOCKSTEP_CHECK(found != std::end(kScenarios));
  return *found;
}

bool AllAreRight(absl::string_view scenario, uint64_t seeds) {
  const Scenario* const found = &FindScenario(scenario);
  const uint64_t end = std::max<uint64_t>(seeds / kShareOfSeeds, 1);
  int wrong = 0;
  for (uint64_t seed = 0; seed < end && wrong < kMostPrinted; ++seed) {
    SimRun run;
    const std::string what = Simulate({found, seed}, &run);
    if (what.empty()) continue;
    ++wrong;
    const uint64_t number = seed * std::size(kScenarios) + (found - kScenarios);
    std::cerr << what << "\nReplay: " << ReplayCommand(number) << "\n";
  }
  return wrong == 0;
}

}  // namespace lockstep::sim
