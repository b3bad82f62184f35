// Every process of one run is restarted in turn, as an upgrade does it: SIGTERM, then the same
// command again. The job ends with the undisturbed model.
#include <signal.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kCleanEnd = absl::Seconds(8);
constexpr int kFirstSteps = 50;
// From a restart on, and again before the next one.
constexpr int kPhaseSteps = 150;
constexpr int kSteps = kFirstSteps + 5 * 2 * kPhaseSteps + 50;
constexpr absl::Duration kSlowStep = absl::Milliseconds(10);
// With a restart every 4 s. Of a run that takes hours they are nothing.
constexpr double kLeastGoodput = 0.8;
constexpr int kTold = 143;
const std::vector<std::string> kChiefFlags = {"--resume", "--lease=2"};

JobText Job() {
  return {.max_steps = kSteps, .checkpoint = "folder: 'checkpoints' every_steps: 20"};
}

struct Run {
  double test_loss = 0;
  std::map<std::string, std::string> tensors;  // CRC by name, of the last checkpoint
};

Run EndOf(Cluster& cluster) {
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["steps"] == kSteps);
  return {.test_loss = summary["test_loss"],
          .tensors = TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", kSteps)))};
}

void EndAsTold(Process& process, Cluster& cluster) {
  process.Signal(SIGTERM);
  const auto code = process.Wait(kCleanEnd);
  INFO(cluster.Logs());
  REQUIRE(code == kTold);
}

absl::Duration TimeOf(const std::function<void()>& phase) {
  const absl::Time begin = absl::Now();
  phase();
  return absl::Now() - begin;
}

// Restarts process after process while the job goes on. Steps that are made again do not count.
class RollingRestart {
 public:
  explicit RollingRestart(Cluster* cluster) : cluster_(*cluster) { AwaitSteps(kFirstSteps); }

  void Worker(int index) {
    Restart(cluster_.worker(index), [&] { cluster_.StartWorker(index); });
  }
  void Chief() {
    Restart(cluster_.chief(), [&] { cluster_.StartChief(kChiefFlags); });
  }
  // Every ps goes back to the newest checkpoint.
  void Ps(int index) {
    Restart(cluster_.ps(index), [&] { cluster_.StartPs(index); });
  }

  // The share of its rate that the job has kept. What else the machine does changes from second to
  // second: the rate is measured between the restarts.
  double Goodput() const { return absl::FDivDuration(2 * calm_, calm_ + disturbed_); }
  std::string Times() const {
    return absl::StrCat(absl::FormatDuration(disturbed_), " for the steps from the restarts on, ",
                        absl::FormatDuration(calm_), " for as many others");
  }

 private:
  void Restart(Process& process, const std::function<void()>& start) {
    disturbed_ += TimeOf([&] {
      EndAsTold(process, cluster_);
      start();
      AwaitSteps(kPhaseSteps);
    });
    calm_ += TimeOf([&] { AwaitSteps(kPhaseSteps); });
  }
  void AwaitSteps(int steps) {
    step_ += steps;
    const bool goes_on = cluster_.WaitForStep(step_, kWhole);
    INFO(cluster_.Logs());
    REQUIRE(goes_on);
  }

  Cluster& cluster_;
  int step_ = 0;
  absl::Duration disturbed_, calm_;
};

TEST_CASE("a rolling restart of all processes ends with the undisturbed model") {
  Run calm;
  {
    Cluster cluster(2, 2);
    cluster.StartAll(Job(), kChiefFlags);
    calm = EndOf(cluster);
  }
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job(), kChiefFlags);
  RollingRestart restart(&cluster);
  restart.Worker(0);
  restart.Worker(1);
  restart.Chief();
  restart.Ps(0);
  restart.Ps(1);
  const bool runs = cluster.chief().running();
  const Run restarted = EndOf(cluster);
  CHECK(runs);
  CHECK(restarted.test_loss == calm.test_loss);
  CHECK(restarted.tensors == calm.tensors);
  WARN("goodput: " << 100 * restart.Goodput() << " %: " << restart.Times());
  CHECK(restart.Goodput() >= kLeastGoodput);
}

}  // namespace
}  // namespace lockstep::test
