// ./lockstep test --sim: simulated jobs of every scenario under random faults.
#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/config/flags.h"
#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

ABSL_FLAG(uint64_t, seeds, 1000, "how many seeds are simulated, from 0");
ABSL_FLAG(int64_t, seed, -1, "simulates this seed alone");
ABSL_FLAG(std::string, scenario, "", "of the seeds, simulates those of this scenario alone");
ABSL_FLAG(uint64_t, least_faults, 0, "fails if fewer faults are injected");

namespace lockstep::sim {
namespace {

constexpr char kUsage[] = "simulate [--seeds=N | --seed=K] [--scenario=NAME] [--least_faults=N]";
constexpr uint64_t kMostFailures = 5;

struct Seeds {
  uint64_t first = 0;
  uint64_t end = 0;  // the one after the last
};

Seeds ChosenSeeds() {
  const int64_t seed = absl::GetFlag(FLAGS_seed);
  if (seed < 0) return {0, absl::GetFlag(FLAGS_seeds)};
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(seed) + 1};
}

bool IsChosen(const Scenario& scenario) {
  const std::string name = absl::GetFlag(FLAGS_scenario);
  return name.empty() || scenario.name == name;
}

void PrintFaults(const FaultCounts& faults) {
  for (size_t i = 0; i < kNumFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    std::cout << std::setw(10) << faults.Of(fault) << "  " << NameOf(fault) << "\n";
  }
}

// Whether no seed has a violation, and enough faults were injected to say so.
bool SimulateAll(const Seeds& seeds) {
  const absl::Duration start = Clock::Real()->Monotonic();
  Trace total;
  uint64_t passed = 0;
  uint64_t failed = 0;
  for (uint64_t seed = seeds.first; seed < seeds.end && failed < kMostFailures; ++seed) {
    if (!IsChosen(*CaseOf(seed).scenario)) continue;
    SimRun run;
    const std::string wrong = Simulate(CaseOf(seed), &run);
    total.Append(run.trace);
    if (wrong.empty()) {
      ++passed;
      continue;
    }
    ++failed;
    std::cout << "FAILED: seed " << seed << ": " << wrong << "\n"
              << "Replay: " << ReplayCommand(seed) << std::endl;
  }
  PrintFaults(total.faults());
  std::cout << absl::StreamFormat("%016x  hash of all events\n", total.hash());
  std::cout << absl::StreamFormat("%d faults in %d events of %d seeds, %.1f s\n",
                                  total.faults().total(), total.events(), passed + failed,
                                  absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start))
            << passed << " passed, " << failed << " failed\n";
  const uint64_t least = absl::GetFlag(FLAGS_least_faults);
  if (total.faults().total() >= least) return failed == 0;
  std::cout << absl::StreamFormat(
      "FAILED: %d faults were injected, and --least_faults asks for %d\n", total.faults().total(),
      least);
  return false;
}

}  // namespace
}  // namespace lockstep::sim

int main(int argc, char** argv) {
  using namespace lockstep;  // NOLINT(google-build-using-namespace)
  if (const auto flags = HandleFlags("simulate", sim::kUsage, argc, argv); flags.exit) {
    return static_cast<int>(flags.code);
  }
  if (const absl::Status status = log::Init("simulation", "error"); !status.ok()) {
    return PrintFailure("simulate", status);
  }
  if (std::ranges::none_of(sim::Scenarios(), sim::IsChosen)) {
    return PrintFailure(
        "simulate",
        UsageError(absl::StrCat("--scenario: there is no scenario '", absl::GetFlag(FLAGS_scenario),
                                "'. Remedy: tests/sim/scenarios/scenario.cc has the "
                                "table of them")));
  }
  return sim::SimulateAll(sim::ChosenSeeds()) ? 0 : 1;
}
