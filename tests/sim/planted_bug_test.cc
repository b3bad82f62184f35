// The simulator finds what it is there for: each of these bugs, within so many seeds.
#include "tests/sim/planted_bug.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

using Catch::Matchers::StartsWith;

constexpr uint64_t kMostSeeds = 300;

// What the first seed finds that finds anything of this kind, the name of an invariant; and without
// the bug it finds nothing.
std::string FirstFinding(const std::string& scenario, PlantedBug bug,
                         const std::string& kind = "") {
  REQUIRE(log::Init("simulation", "error").ok());
  for (uint64_t seed = 0; seed < kMostSeeds; ++seed) {
    SimRun run{.planted = bug};
    const std::string found = Simulate({&FindScenario(scenario), seed}, &run);
    if (found.empty() || !absl::StrContains(found, kind)) continue;
    SimRun sound;
    CHECK(Simulate({&FindScenario(scenario), seed}, &sound) == "");
    return found;
  }
  return "nothing";
}

TEST_CASE("a gradient that is applied twice after a retry is found by its values") {
  CHECK_THAT(FirstFinding("rough_network_fifo", PlantedBug::kDoubleApply),
             StartsWith("rough_network_fifo: values: "));
}

TEST_CASE("a lost token is found by those who wait for ever") {
  CHECK_THAT(FirstFinding("fifo", PlantedBug::kLostToken), StartsWith("fifo: progress: "));
  CHECK_THAT(FirstFinding("per_replica", PlantedBug::kLostToken),
             StartsWith("per_replica: progress: "));
}

TEST_CASE("a term that two chiefs use is found by their views") {
  CHECK_THAT(FirstFinding("standbys", PlantedBug::kSharedTerm), StartsWith("standbys: term: "));
}

TEST_CASE("a ps that returns to an earlier step in the same epoch is found by its step") {
  CHECK_THAT(FirstFinding("ps_deaths", PlantedBug::kSplitStep), StartsWith("ps_deaths: step: "));
}

TEST_CASE("a stale gradient that is accepted after a restore is found by its epoch") {
  // A stale dequeue that is accepted leaves its worker waiting for ever, which is found, too.
  CHECK_THAT(FirstFinding("ps_deaths", PlantedBug::kStaleAfterRestore, "epoch: "),
             StartsWith("ps_deaths: epoch: "));
}

TEST_CASE("a manifest that is there before a shard's file is found by what it names") {
  CHECK_THAT(FirstFinding("ps_deaths", PlantedBug::kManifestBeforeShard),
             StartsWith("ps_deaths: checkpoint: "));
}

TEST_CASE("a step that is shown before the copy has it is found there") {
  CHECK_THAT(FirstFinding("copies", PlantedBug::kShownBeforeCopy), StartsWith("copies: copy: "));
}

TEST_CASE("a copy that has not taken what it says is found by its step") {
  CHECK_THAT(FirstFinding("copies", PlantedBug::kForgottenMean), StartsWith("copies: copy: "));
}

TEST_CASE("a ps that goes on beside its promoted copy is found by what the copy lacks") {
  CHECK_THAT(FirstFinding("copy_cuts", PlantedBug::kUnfencedPrimary),
             StartsWith("copy_cuts: copy: "));
}

TEST_CASE("a copy that takes over with state it has not got is found by its values") {
  CHECK_THAT(FirstFinding("copy_deaths", PlantedBug::kLostState),
             StartsWith("copy_deaths: values: "));
}

TEST_CASE("an old view that is accepted is found by its number") {
  CHECK_THAT(FirstFinding("rough_network", PlantedBug::kOldView),
             StartsWith("rough_network: view: "));
}

}  // namespace
}  // namespace lockstep::sim
