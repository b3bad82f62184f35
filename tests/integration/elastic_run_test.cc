// Real jobs whose workers come and go (sync.min_replicas): the result is that of ordinary jobs with
// the same workers, one after the other.
#include <signal.h>

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kCleanEnd = absl::Seconds(5);
constexpr int kSteps = 600;
constexpr absl::Duration kSlowStep = absl::Milliseconds(10);
constexpr int kForeverSteps = 1'000'000;
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

// As chiefs have logged them. A view that a chief logs and dies before any ps has it does not come
// into force: its successor gives the number to another one.
std::vector<View> ViewsIn(const std::string& log) {
  static const std::regex line(
      R"(from step ([0-9,]+) on \d+ replicas? shares? the global batch: workers? ([0-9, ]+) \(view (\d+)\))");
  std::map<int, View> views;
  for (std::sregex_iterator match(log.begin(), log.end(), line), end; match != end; ++match) {
    View view{.step = std::stoll(absl::StrReplaceAll((*match)[1].str(), {{",", ""}}))};
    for (const auto& worker : absl::StrSplit((*match)[2].str(), ", ")) {
      view.workers.push_back(std::stoi(std::string(worker)));
    }
    views[std::stoi((*match)[3].str())] = std::move(view);
  }
  std::vector<View> in_order;
  for (auto& [number, view] : views) in_order.push_back(std::move(view));
  return in_order;
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::string> tensors;  // CRC by name, of the last checkpoint
};

// By ordinary jobs, each of which goes on from the checkpoint of the one before with the workers of
// the next view, until there is one of `last_step`.
Trained TrainOrdinary(const std::vector<View>& views, int64_t last_step = kSteps) {
  const TemporaryFolder saved;
  Trained trained;
  for (size_t i = 0; i < views.size(); ++i) {
    const bool is_last = i + 1 == views.size();
    std::vector<std::string> flags;
    if (i > 0) flags.push_back("--restore=" + FolderOf(saved, views[i].step));
    const std::vector<double> losses =
        LossesOf(2, static_cast<int>(views[i].workers.size()),
                 Job(is_last ? last_step : views[i + 1].step, saved.path(), ""), flags);
    trained.losses.insert(trained.losses.end(), losses.begin(), losses.end());
  }
  trained.tensors = TensorsOf(FolderOf(saved, last_step));
  return trained;
}

// Has everybody who runs read the cluster spec again, in which worker 2 is new, or is no more.
void TellOfWorker2(Cluster& cluster, const std::string& change) {
  const std::string line = absl::StrCat("cluster spec: worker 2 ", change);
  for (Process* process :
       {&cluster.chief(), &cluster.ps(0), &cluster.ps(1), &cluster.worker(0), &cluster.worker(1)}) {
    process->Signal(SIGHUP);
    INFO(line << process->Output());
    REQUIRE(process->WaitForOutput(line, kWhole));
  }
}

// Returns when the chief has logged that these workers share the global batch.
void AwaitView(Cluster& cluster, const std::string& workers_and_view) {
  const bool is_there = cluster.chief().WaitForOutput(workers_and_view, kWhole);
  INFO(workers_and_view << cluster.Logs());
  REQUIRE(is_there);
}

TEST_CASE("a worker joins and one departs: the bits are those of ordinary jobs in their place") {
  // The one that joins may be in no other task's cluster spec.
  const bool is_known = GENERATE(true, false);
  CAPTURE(is_known);
  const TemporaryFolder saved;
  Cluster cluster(2, 3);
  cluster.SlowDown(kSlowStep);
  const std::string whole_spec = cluster.folder().Read("cluster.json");
  json spec = json::parse(whole_spec);
  if (!is_known) spec["worker"].erase(2);
  cluster.folder().Write("cluster.json", spec.dump());
  cluster.StartAll(Job(kSteps, saved.path(), "min_replicas: 2"), {kShortLease}, 2);
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.folder().Write("cluster.json", whole_spec);
  cluster.StartWorker(2);
  const bool has_joined = cluster.chief().WaitForOutput("workers 0, 1, 2 (view 2)", kWhole);
  {
    INFO(cluster.Logs());
    REQUIRE(has_joined);
  }
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
  const Trained ordinary = TrainOrdinary(changes);
  CHECK(ordinary.losses == Losses(summary));
  CHECK(ordinary.tensors == TensorsOf(FolderOf(saved, kSteps)));
}

TEST_CASE("SIGHUP adds a worker and removes it again: the bits are those of ordinary jobs") {
  const bool has_tls = GENERATE(false, true);
  CAPTURE(has_tls);
  const TemporaryFolder saved;
  Cluster cluster(2, 3);
  cluster.SlowDown(kSlowStep);
  json spec = json::parse(cluster.folder().Read("cluster.json"));
  spec["worker"].erase(2);
  const std::string without = spec.dump();
  cluster.folder().Write("cluster.json", without);
  const std::string first_address = cluster.spec().workers[2];
  if (has_tls) cluster.UseTls();
  cluster.StartAll(Job(kForeverSteps, saved.path(), "min_replicas: 2"), {kShortLease}, 2);
  REQUIRE(cluster.WaitForStep(20, kWhole));
  const auto add = [&](int view) {
    cluster.Move(Role::kWorker, 2);  // writes all workers
    if (has_tls) cluster.UseTls();
    TellOfWorker2(cluster, absl::StrCat("(", cluster.spec().workers[2], ") was added"));
    cluster.StartWorker(2);
    AwaitView(cluster, absl::StrCat("workers 0, 1, 2 (view ", view, ")"));
  };
  add(2);
  cluster.worker(2).Signal(SIGTERM);
  CHECK(cluster.worker(2).Wait(kCleanEnd) == 143);
  AwaitView(cluster, "workers 0, 1 (view 3)");
  const std::string second_address = cluster.spec().workers[2];
  cluster.folder().Write("cluster.json", without);
  TellOfWorker2(cluster, absl::StrCat("(", second_address, ") was removed"));
  add(4);
  CHECK(std::set{first_address, second_address, cluster.spec().workers[2]}.size() == 3);
  const int64_t changed_at = ViewsIn(cluster.chief().Output()).back().step;
  REQUIRE(cluster.WaitForStep(changed_at + 100, kWhole));
  cluster.chief().Signal(SIGINT);
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(code == 130);
  for (int i = 0; i < 3; ++i) CHECK(cluster.worker(i).Wait(kCleanEnd) == 130);
  const std::vector<View> changes = ViewsIn(cluster.chief().Output());
  REQUIRE(changes.size() == 4);
  const int64_t last_step = std::stoll(saved.Read("LATEST").substr(std::string("ckpt-").size()));
  CHECK(last_step > changed_at);
  CHECK(TrainOrdinary(changes, last_step).tensors == TensorsOf(FolderOf(saved, last_step)));
}

TEST_CASE("a chief that takes over finds the replica views, and goes on changing them") {
  const TemporaryFolder saved;
  Cluster cluster(2, 3);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job(kSteps, saved.path(), "min_replicas: 1"), {kShortLease}, 2);
  // It may have begun with one of the two.
  REQUIRE(cluster.WaitForStep(20, kWhole));
  REQUIRE(cluster.chief().WaitForOutput("workers 0, 1 (view", kWhole));
  cluster.StartWorker(2);
  REQUIRE(cluster.chief().WaitForOutput("workers 0, 1, 2 (view", kWhole));
  // The ps have the view once its first step is made.
  REQUIRE(cluster.WaitForStep(ViewsIn(cluster.chief().Output()).back().step + 1, kWhole));
  cluster.chief().Signal(SIGKILL);
  REQUIRE(cluster.chief().Wait(kCleanEnd) == 137);
  std::string log = cluster.chief().Output();
  cluster.StartChief({kShortLease});
  REQUIRE(cluster.chief().WaitForOutput("taking over at step", kWhole));
  cluster.worker(1).Signal(SIGTERM);
  const auto departed = cluster.worker(1).Wait(kCleanEnd);
  const auto code = cluster.chief().Wait(kWhole);
  INFO(log << cluster.Logs());
  CHECK(departed == 143);
  REQUIRE(code == 0);
  log += cluster.chief().Output();
  const std::vector<View> changes = ViewsIn(log);
  REQUIRE(changes.size() >= 3);
  CHECK(changes.back().workers == std::vector<int>{0, 2});
  CHECK(TrainOrdinary(changes).tensors == TensorsOf(FolderOf(saved, kSteps)));
}

TEST_CASE("SHRINK: the others share the batch of a worker that is killed, until it is back") {
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job(kForeverSteps, cluster.folder().Path("checkpoints"),
                       "min_replicas: 1 quorum_policy: SHRINK"),
                   {kShortLease});
  REQUIRE(cluster.chief().WaitForOutput("workers 0, 1 (view", kWhole));
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.worker(1).Signal(SIGKILL);
  REQUIRE(cluster.worker(1).Wait(kCleanEnd) == 137);
  // It may have begun with one of the two.
  const size_t views = ViewsIn(cluster.chief().Output()).size();
  const bool is_left_out = cluster.chief().WaitForOutput(
      absl::StrCat("global batch: worker 0 (view ", views + 1, ")"), kWhole);
  {
    INFO(cluster.Logs());
    REQUIRE(is_left_out);
  }
  cluster.StartWorker(1);
  REQUIRE(
      cluster.chief().WaitForOutput(absl::StrCat("workers 0, 1 (view ", views + 2, ")"), kWhole));
  cluster.chief().Signal(SIGINT);
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(code == 130);
  CHECK(cluster.worker(0).Wait(kCleanEnd) == 130);
  CHECK(cluster.worker(1).Wait(kCleanEnd) == 130);
}

TEST_CASE("WAIT: after --quorum_deadline the others share the batch of a worker that is lost") {
  Cluster cluster(1, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job(kSteps, cluster.folder().Path("checkpoints"), "min_replicas: 1"),
                   {kShortLease, "--quorum_deadline=1"});
  REQUIRE(cluster.chief().WaitForOutput("workers 0, 1 (view", kWhole));
  // A step that worker 0 alone was to take would wait for nobody else.
  REQUIRE(cluster.WaitForStep(ViewsIn(cluster.chief().Output()).back().step, kWhole));
  cluster.worker(0).Signal(SIGKILL);
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  REQUIRE(code == 0);
  CHECK(cluster.worker(1).Wait(kCleanEnd) == 0);
  const json summary = json::parse(cluster.Summary());
  CHECK(summary["steps"] == kSteps);
  CHECK(ViewsOf(summary).back().workers == std::vector<int>{1});
  CHECK(summary["test_accuracy"] > 0.8);
}

}  // namespace
}  // namespace lockstep::test
