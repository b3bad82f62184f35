// Every process of one run is restarted in turn, as an upgrade does it: SIGTERM, then the same
// command again. The job ends with the undisturbed model.
#include <signal.h>

#include <catch2/catch.hpp>
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
constexpr int kSteps = 900;
constexpr absl::Duration kSlowStep = absl::Milliseconds(5);
constexpr int kTold = 143;
const std::vector<std::string> kChiefFlags = {"--resume", "--lease=2"};

JobText Job() {
  return {.max_steps = kSteps, .checkpoint = "folder: 'checkpoints' every_steps: 20"};
}

struct Run {
  double test_loss = 0;
  std::map<std::string, std::string> tensors;  // CRC by name, of the last checkpoint
  absl::Duration took;
};

Run EndOf(Cluster& cluster, absl::Time began) {
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["steps"] == kSteps);
  return {.test_loss = summary["test_loss"],
          .tensors = TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", kSteps))),
          .took = absl::Now() - began};
}

void EndAsTold(Process& process, Cluster& cluster) {
  process.Signal(SIGTERM);
  const auto code = process.Wait(kCleanEnd);
  INFO(cluster.Logs());
  REQUIRE(code == kTold);
}

// Restarts process after process while the job goes on: after each, so many steps further.
class RollingRestart {
 public:
  explicit RollingRestart(Cluster* cluster) : cluster_(*cluster) { AwaitSteps(); }

  void Worker(int index) {
    EndAsTold(cluster_.worker(index), cluster_);
    cluster_.StartWorker(index);
    AwaitSteps();
  }
  void Chief() {
    EndAsTold(cluster_.chief(), cluster_);
    cluster_.StartChief(kChiefFlags);
    AwaitSteps();
  }
  // Every ps goes back to the newest checkpoint.
  void Ps(int index) {
    EndAsTold(cluster_.ps(index), cluster_);
    cluster_.StartPs(index);
    AwaitSteps();
  }

 private:
  void AwaitSteps() {
    step_ += kSteps / 9;
    const bool goes_on = cluster_.WaitForStep(step_, kWhole);
    INFO(cluster_.Logs());
    REQUIRE(goes_on);
  }

  Cluster& cluster_;
  int step_ = 0;
};

TEST_CASE("a rolling restart of all processes ends with the undisturbed model") {
  Run calm;
  {
    Cluster cluster(2, 2);
    cluster.SlowDown(kSlowStep);
    const absl::Time began = absl::Now();
    cluster.StartAll(Job(), kChiefFlags);
    calm = EndOf(cluster, began);
  }
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  const absl::Time began = absl::Now();
  cluster.StartAll(Job(), kChiefFlags);
  RollingRestart restart(&cluster);
  restart.Worker(0);
  restart.Worker(1);
  restart.Chief();
  restart.Ps(0);
  restart.Ps(1);
  const bool runs = cluster.chief().running();
  const Run restarted = EndOf(cluster, began);
  CHECK(runs);
  CHECK(restarted.test_loss == calm.test_loss);
  CHECK(restarted.tensors == calm.tensors);
  // Five restarts in seconds: of a run that takes hours they are nothing.
  WARN("goodput: " << 100 * absl::FDivDuration(calm.took, restarted.took) << " %, "
                   << absl::FormatDuration(calm.took) << " undisturbed, "
                   << absl::FormatDuration(restarted.took) << " with five restarts");
}

}  // namespace
}  // namespace lockstep::test
