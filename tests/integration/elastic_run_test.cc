// Real jobs whose workers come and go (sync.min_replicas): the result is that of ordinary jobs with
// the same workers, one after the other.
#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kCleanEnd = absl::Seconds(5);
constexpr int kSteps = 4'000;
constexpr char kShortLease[] = "--lease=2";

// All that depends on a replica's place: its examples, shifts, dropout and moving statistics.
constexpr char kModel[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "flat" flatten {} }
  layers { name: "hidden" dense { units: 16 } }
  layers { name: "norm" batch_norm { momentum: 0.9 } }
  layers { name: "relu" relu {} }
  layers { name: "drop" dropout { rate: 0.25 } }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

JobText Job(int64_t max_steps, const std::string& checkpoints, const std::string& sync) {
  return {.global_batch = 24,
          .max_steps = static_cast<int>(max_steps),
          .optimizer = "adam {} learning_rate { base: 0.003 }",
          .sync = sync,
          .checkpoint = "folder: '" + checkpoints + "'",
          .data = DigitsData() + " augmentation { shift: 1 }",
          .model = kModel,
          .more = "seed: 3"};
}

std::string FolderOf(const TemporaryFolder& saved, int64_t step) {
  return saved.Path(absl::StrCat("ckpt-", step));
}

struct View {
  int64_t step;
  std::vector<int> workers;
};

std::vector<View> ViewsOf(const json& summary) {
  std::vector<View> views;
  for (const json& view : summary.at("replica_views")) {
    views.push_back({view.at("step"), view.at("workers")});
    CHECK(view.at("number") == views.size());
    CHECK(view.at("replicas_to_aggregate") == views.back().workers.size());
  }
  return views;
}

// Ordinary jobs, each of which goes on from the checkpoint of the one before with the workers of
// the next view. Checks losses and, at the end, every tensor.
void CheckAgainstOrdinaryJobs(const std::vector<View>& views, const std::vector<double>& losses,
                              const std::string& last_checkpoint) {
  const TemporaryFolder saved;
  for (size_t i = 0; i < views.size(); ++i) {
    const bool is_last = i + 1 == views.size();
    const int64_t end = is_last ? static_cast<int64_t>(losses.size()) : views[i + 1].step;
    std::vector<std::string> flags;
    if (i > 0) flags.push_back("--restore=" + FolderOf(saved, views[i].step));
    const std::vector<double> expected =
        LossesOf(2, static_cast<int>(views[i].workers.size()), Job(end, saved.path(), ""), flags);
    CAPTURE(i, views[i].step, end);
    CHECK(expected == std::vector<double>(losses.begin() + views[i].step, losses.begin() + end));
  }
  CHECK(TensorsOf(FolderOf(saved, static_cast<int64_t>(losses.size()))) ==
        TensorsOf(last_checkpoint));
}

TEST_CASE("a worker joins and one departs: the bits are those of ordinary jobs in their place") {
  const TemporaryFolder saved;
  Cluster cluster(2, 3);
  cluster.StartAll(Job(kSteps, saved.path(), "min_replicas: 2"), {kShortLease}, 2);
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.StartWorker(2);
  REQUIRE(cluster.chief().WaitForOutput("workers 0, 1, 2 (view 2)", kWhole));
  cluster.worker(0).Signal(SIGTERM);
  const auto departed = cluster.worker(0).Wait(kCleanEnd);
  const bool views = cluster.chief().WaitForOutput("workers 1, 2 (view 3)", kWhole);
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(departed == 143);
  CHECK(views);
  REQUIRE(code == 0);
  CHECK(cluster.worker(1).Wait(kCleanEnd) == 0);
  CHECK(cluster.worker(2).Wait(kCleanEnd) == 0);
  const json summary = json::parse(cluster.Summary());
  CHECK(summary["steps"] == kSteps);
  CHECK(summary["stale"] == 0);
  const std::vector<View> changes = ViewsOf(summary);
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].step == 0);
  CHECK(changes[0].workers == std::vector<int>{0, 1});
  CHECK(changes[1].workers == std::vector<int>{0, 1, 2});
  CHECK(changes[2].workers == std::vector<int>{1, 2});
  CheckAgainstOrdinaryJobs(changes, Losses(summary), FolderOf(saved, kSteps));
}

}  // namespace
}  // namespace lockstep::test
