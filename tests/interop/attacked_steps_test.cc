// What a job's steps cost a ps while a client attacks it, beside what they cost without.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/integration/process_memory.h"
#include "tests/interop/python.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Minutes(1);
constexpr int kForeverSteps = 10'000'000;
constexpr int kRounds = 3;
// Many: while the attacker is stopped, its budget of refusals fills again.
constexpr int kStepsOfPhase = 3000;
// The attacker and the job share the processors, and each other program takes time from both: how
// long a step takes says little here. What it costs the ps does.
constexpr double kMostCost = 2;

// Of some phases with as many steps each.
struct Cost {
  absl::Duration ps;        // processor time
  absl::Duration attacker;  // processor time
  absl::Duration time;
  double steps = 0;
};

void MeasurePhase(Cluster& cluster, const Process& attacker, Cost* cost) {
  const auto now = [&cluster] {
    const auto status = FetchStatus(cluster.spec().chief, kWhole, cluster.credentials());
    REQUIRE(status.ok());
    return static_cast<double>(status->global_step());
  };
  const double first = now();
  const absl::Duration ps = CpuTimeOf(cluster.ps(0));
  const absl::Duration by_attacker = CpuTimeOf(attacker);
  const absl::Time began = absl::Now();
  REQUIRE(cluster.WaitForStep(static_cast<int64_t>(first) + kStepsOfPhase, kWhole));
  cost->steps += now() - first;
  cost->ps += CpuTimeOf(cluster.ps(0)) - ps;
  cost->attacker += CpuTimeOf(attacker) - by_attacker;
  cost->time += absl::Now() - began;
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
  Cost calm, attacked;
  for (int round = 0; round < kRounds; ++round) {
    attacker.Signal(SIGSTOP);
    MeasurePhase(cluster, attacker, &calm);
    attacker.Signal(SIGCONT);
    MeasurePhase(cluster, attacker, &attacked);
  }
  const auto ratio = [&](absl::Duration Cost::*of) {
    return absl::FDivDuration(attacked.*of, calm.*of) * calm.steps / attacked.steps;
  };
  INFO(cluster.Logs());
  CHECK(attacker.running());
  CHECK(ratio(&Cost::ps) < kMostCost);
  WARN("attacked, a step costs the ps "
       << ratio(&Cost::ps) << " times as much processor time and takes " << ratio(&Cost::time)
       << " times as long; the attacker itself takes "
       << absl::FDivDuration(attacked.attacker, attacked.time) << " of a processor in "
       << attacked.time << ": " << attacker.Output());
}

}  // namespace
}  // namespace lockstep::test
