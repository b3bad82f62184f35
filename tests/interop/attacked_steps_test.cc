// What a job's steps cost a ps while a client attacks it, beside what they cost without.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/bench/interleave.h"
#include "tests/integration/cluster.h"
#include "tests/integration/process_memory.h"
#include "tests/interop/python.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Minutes(1);
constexpr int kForeverSteps = 10'000'000;
constexpr int kRounds = 7;
constexpr int kStepsOfPhase = 400;
// The attacker and the job share the processors, and each other program takes time from both: how
// long a step takes says little here. What it costs the ps does.
constexpr double kMostCost = 5;

// Of each of the next steps.
struct StepCost {
  double ps_seconds = 0;  // of processor time
  double seconds = 0;
};

StepCost MeasurePhase(Cluster& cluster) {
  const auto now = [&cluster] {
    const auto status = FetchStatus(cluster.spec().chief, kWhole, cluster.credentials());
    REQUIRE(status.ok());
    return static_cast<double>(status->global_step());
  };
  const double first = now();
  const absl::Duration spent = CpuTimeOf(cluster.ps(0));
  const absl::Time began = absl::Now();
  REQUIRE(cluster.WaitForStep(static_cast<int64_t>(first) + kStepsOfPhase, kWhole));
  const double steps = now() - first;
  return {.ps_seconds = absl::ToDoubleSeconds(CpuTimeOf(cluster.ps(0)) - spent) / steps,
          .seconds = absl::ToDoubleSeconds(absl::Now() - began) / steps};
}

TEST_CASE("the steps of a job cost a ps little more while a client attacks it without a pause") {
  Cluster cluster(1, 3);
  const std::string tls = cluster.UseTls();
  // Of the three workers two are enough; the attacker is the third.
  cluster.StartAll({.max_steps = kForeverSteps, .sync = "replicas_to_aggregate: 2"},
                   {"--lease=600"});
  cluster.worker(2).Signal(SIGKILL);
  REQUIRE(cluster.WaitForStep(5, kWhole));
  Process attacker(
      PythonCommand("attacks.py", {SourceRoot(), tls, cluster.spec().ps[0], cluster.spec().chief,
                                   cluster.spec().workers[0], cluster.spec_path(), "forever"}));
  const bool attacks = attacker.WaitForOutput("calls", kWhole);
  INFO(attacker.Output());
  REQUIRE(attacks);
  std::vector<double> cost, time;
  for (int round = 0; round < kRounds; ++round) {
    attacker.Signal(SIGSTOP);
    const StepCost calm = MeasurePhase(cluster);
    attacker.Signal(SIGCONT);
    const StepCost attacked = MeasurePhase(cluster);
    cost.push_back(attacked.ps_seconds / calm.ps_seconds);
    time.push_back(attacked.seconds / calm.seconds);
  }
  INFO(cluster.Logs());
  CHECK(attacker.running());
  CHECK(bench::Median(cost) < kMostCost);
  WARN("attacked, a step costs the ps "
       << bench::Median(cost) << " times as much processor time and takes " << bench::Median(time)
       << " times as long; attacker: " << attacker.Output());
}

}  // namespace
}  // namespace lockstep::test
