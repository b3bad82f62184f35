// How long a job stands still when a ps without a copy is killed and its successor is there at
// once: every ps reads the checkpoint again. '[.large]' has variables of 1 GiB.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/training_run.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(120);
constexpr absl::Duration kAllowed = absl::Seconds(10);
constexpr absl::Duration kAnswer = absl::Seconds(1);
constexpr absl::Duration kNextLook = absl::Milliseconds(5);
constexpr int kExamples = 240;

struct Size {
  int mebibytes;
  int max_steps;  // it still runs when its first checkpoint is there
  std::string optimizer = "sgd {}";
};

// A table of 4 KiB a row, of which a step reads some rows: the checkpoint is large and a step is
// not.
class LargeJob {
 public:
  explicit LargeJob(const Size& size) : size_(size) {
    std::string csv;
    const int rows = size.mebibytes * 256;
    for (int i = 0; i < kExamples; ++i) {
      absl::StrAppend(&csv, (int64_t{7919} * i) % rows, ",", i % 2, "\n");
    }
    folder_.Write("train.csv", csv);
    model_ = absl::StrCat(
        "input_shape: [1] layers { name: 'rows' embedding { rows: ", rows,
        " dim: 1024 initializer { zeros {} } } } layers { name: 'scores' dense { units: 2 } } "
        "layers { name: 'loss' softmax_cross_entropy {} }");
  }

  JobText Text() const {
    return {.global_batch = 24,
            .max_steps = size_.max_steps,
            .optimizer = size_.optimizer + " learning_rate { base: 0.1 }",
            .checkpoint = "folder: 'checkpoints' every_steps: 100 keep_last: 2",
            .data = absl::StrCat("csv { train: '", folder_.Path("train.csv"),
                                 "' label_column: '1' no_header: true }"),
            .model = model_};
  }
  std::map<std::string, std::string> LastTensors(const Cluster& cluster) const {
    return TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", size_.max_steps)));
  }

 private:
  const TemporaryFolder folder_;
  const Size size_;
  std::string model_;
};

// Waits until `ps` has closed a step after it was restored.
bool WaitForNewStep(const Cluster& cluster, int ps) {
  const absl::Time deadline = absl::Now() + kWhole;
  int64_t restored = 0;
  while (absl::Now() < deadline) {
    const auto status = FetchStatus(cluster.spec().ps[ps], kAnswer);
    const int64_t step = status.ok() ? status->shard().shard_step() : 0;
    if (restored > 0 && step > restored) return true;
    if (restored == 0) restored = step;
    absl::SleepFor(kNextLook);
  }
  return false;
}

// Kills a ps and starts its successor; returns the time until the next step.
absl::Duration TimeToTrain(const Size& size) {
  const LargeJob job(size);
  Cluster cluster(2, 2);
  std::filesystem::create_directory(cluster.folder().Path("checkpoints"));
  cluster.StartAll(job.Text());
  REQUIRE(WaitForText(cluster.folder().Path("checkpoints/LATEST"), "ckpt-", kWhole));
  const absl::Time killed = absl::Now();
  cluster.ps(1).Signal(SIGKILL);
  REQUIRE(cluster.ps(1).Wait(kWhole) == 128 + SIGKILL);
  cluster.StartPs(1);
  const bool trains = WaitForNewStep(cluster, 1);
  const absl::Duration time = absl::Now() - killed;
  if (!trains) FAIL(cluster.Logs());
  for (int i = 0; i < 2; ++i) CHECK(cluster.worker(i).running());
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] >= 100);

  Cluster calm(2, 2);
  calm.StartAll(job.Text());
  Finish(calm);
  CHECK(job.LastTensors(cluster) == job.LastTensors(calm));
  return time;
}

TEST_CASE("a job whose ps is killed trains again soon, with the same workers to the same bits") {
  CHECK(TimeToTrain({.mebibytes = 32, .max_steps = 1000}) < kAllowed);
}

TEST_CASE("a job of 1 GiB whose ps is killed trains again within 10 s", "[.large]") {
  const std::string optimizer = GENERATE("sgd {}", "momentum { momentum: 0.9 }");
  const absl::Duration time =
      TimeToTrain({.mebibytes = 1024, .max_steps = 1500, .optimizer = optimizer});
  WARN("1 GiB, " << optimizer << ": " << absl::ToDoubleSeconds(time) << " s without a step");
  CHECK(time < kAllowed);
}

}  // namespace
}  // namespace lockstep::test
