// What the steps of a job cost while a client attacks its ps, beside what they cost without.
#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
constexpr int kPairs = 20;
constexpr double kMostCost = 1.2;

// Of a phase, or of several.
struct Cost {
  double steps = 0;
  double steps_of_calm_job = 0;  // meanwhile, of a job that nobody attacks
  double ps_seconds = 0;         // of processor time

  void Add(const Cost& other) {
    steps += other.steps;
    steps_of_calm_job += other.steps_of_calm_job;
    ps_seconds += other.ps_seconds;
  }
  double OfStep() const { return ps_seconds / steps; }
  // In steps of the calm job.
  double TimeOfStep() const { return steps_of_calm_job / steps; }
};

// A job that trains without an end, the client that attacks it, and a calm job. An attacked phase
// is one round of all attacks. A calm one, with the client stopped, takes as long as the round
// before.
class Phases {
 public:
  Phases(Cluster& job, Cluster& calm_job, Process& attacker)
      : job_(job), calm_job_(calm_job), attacker_(attacker) {}

  Cost Attacked() {
    attacker_.Signal(SIGCONT);
    const absl::Time began = absl::Now();
    const Cost cost = Measure([this] {
      REQUIRE(attacker_.WaitForOutput(absl::StrCat("round ", round_++, ":"), kWhole));
    });
    round_time_ = absl::Now() - began;
    return cost;
  }
  Cost Calm() {
    attacker_.Signal(SIGSTOP);
    return Measure([this] { REQUIRE(!attacker_.Wait(round_time_).has_value()); });
  }

 private:
  static double StepOf(const Cluster& job) {
    const auto status = FetchStatus(job.spec().chief, kWhole, job.credentials());
    REQUIRE(status.ok());
    return static_cast<double>(status->global_step());
  }
  template <typename Phase>
  Cost Measure(const Phase& phase) {
    const double step = StepOf(job_);
    const double step_of_calm_job = StepOf(calm_job_);
    const absl::Duration spent = CpuTimeOf(job_.ps(0));
    phase();
    const Cost cost = {.steps = StepOf(job_) - step,
                       .steps_of_calm_job = StepOf(calm_job_) - step_of_calm_job,
                       .ps_seconds = absl::ToDoubleSeconds(CpuTimeOf(job_.ps(0)) - spent)};
    REQUIRE(cost.steps > 0);
    REQUIRE(cost.steps_of_calm_job > 0);
    return cost;
  }

  Cluster& job_;
  Cluster& calm_job_;
  Process& attacker_;
  int round_ = 1;
  absl::Duration round_time_;
};

// The client and other programs take processors from the job as well, more in one phase than in
// another: its steps take 0.5 to 2.7 times as long as in the phase beside. They take as much from
// the calm job, so the time of a step is measured in steps of that one. What the ps spends on the
// attacks is taken from both, too: hence the bound on its processor time. That is of all attacked
// steps together: in a phase of one second a step costs 0.8 to 1.8 times what it costs in the calm
// phase beside. Half of the attacked phases follow a calm one, in which the client's budget of
// refusals has filled; their first refusals are answered at once.
TEST_CASE("the steps of a job cost a ps little more while a client attacks it without a pause") {
  Cluster cluster(1, 3);
  Cluster calm_job(1, 2);
  const std::string tls = cluster.UseTls();
  calm_job.UseTls();
  // Of the three workers two are enough; the attacker is the third.
  cluster.StartAll({.max_steps = kForeverSteps, .sync = "replicas_to_aggregate: 2"},
                   {"--lease=600"});
  calm_job.StartAll({.max_steps = kForeverSteps});
  cluster.worker(2).Signal(SIGKILL);
  REQUIRE(cluster.WaitForStep(5, kWhole));
  REQUIRE(calm_job.WaitForStep(5, kWhole));
  Process attacker(
      PythonCommand("attacks.py", {SourceRoot(), tls, cluster.spec().ps[0], cluster.spec().chief,
                                   cluster.spec().workers[0], cluster.spec_path(), "forever"}));
  Phases phases(cluster, calm_job, attacker);
  (void)phases.Attacked();  // with its start
  Cost all_calm, all_attacked;
  std::vector<double> time;
  std::string pairs;
  for (int pair = 0; pair < kPairs; ++pair) {
    Cost calm, attacked;
    if (pair % 2 == 0) {
      calm = phases.Calm();
      attacked = phases.Attacked();
    } else {
      attacked = phases.Attacked();
      calm = phases.Calm();
    }
    all_calm.Add(calm);
    all_attacked.Add(attacked);
    time.push_back(attacked.TimeOfStep() / calm.TimeOfStep());
    absl::StrAppend(&pairs, attacked.OfStep() / calm.OfStep(), " ", time.back(), "\n");
  }
  const double ps_cost = all_attacked.OfStep() / all_calm.OfStep();
  INFO(attacker.Output() << cluster.Logs());
  INFO("attacked, times as much processor time of the ps, and time, in each pair:\n" << pairs);
  CHECK(attacker.running());
  CHECK(ps_cost <= kMostCost);
  CHECK(bench::Median(time) <= kMostCost);
  WARN("attacked, a step costs the ps " << ps_cost << " times as much processor time and takes "
                                        << bench::Median(time) << " times as long");
}

}  // namespace
}  // namespace lockstep::test
