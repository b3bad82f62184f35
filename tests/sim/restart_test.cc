// The chief dies at any moment and another one takes over from the shards as they are. With every
// replica needed the job computes the same as without, to the last bit.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/log/log.h"
#include "tests/sim/laws.h"
#include "tests/sim/seeds.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(30);
constexpr uint64_t kSeeds = 2000;

SimOptions RandomOptions(uint64_t seed) { return SmallJob(seed, Random(seed ^ 0xc4ef)); }

// Once it tells the end, another chief has nothing to take over.
bool IsTellingTheEnd(SimCluster* cluster) { return cluster->status().state() == "done"; }

void PlanRestarts(uint64_t seed, SimCluster* cluster) {
  Random random(seed ^ 0xdead);
  absl::Duration when = absl::ZeroDuration();
  for (int deaths = random.Between(1, 4); deaths > 0; --deaths) {
    when += random.Between(absl::ZeroDuration(), absl::Milliseconds(120));
    const absl::Duration pause = random.Between(absl::ZeroDuration(), absl::Seconds(8));
    cluster->events().After(when, [cluster, pause] {
      if (IsTellingTheEnd(cluster)) return;
      cluster->chief().Kill();
      cluster->events().After(pause, [cluster] { cluster->StartChief(); });
    });
    when += pause;
  }
}

// A chief that is told to end has withdrawn the grants and perhaps closed a step when it does.
void StartNextOnceEnded(SimCluster* cluster, absl::Duration pause) {
  if (!cluster->end().has_value()) {
    cluster->events().After(absl::Milliseconds(50),
                            [cluster, pause] { StartNextOnceEnded(cluster, pause); });
    return;
  }
  if (!absl::IsCancelled(*cluster->end())) return;
  cluster->chief().Kill();
  cluster->events().After(pause, [cluster] { cluster->StartChief(); });
}

void PlanTerminations(uint64_t seed, SimCluster* cluster) {
  Random random(seed ^ 0x7e97);
  absl::Duration when = absl::ZeroDuration();
  for (int times = random.Between(1, 3); times > 0; --times) {
    when += random.Between(absl::ZeroDuration(), absl::Milliseconds(120));
    const absl::Duration pause = random.Between(absl::ZeroDuration(), absl::Seconds(4));
    cluster->events().After(when, [cluster, pause] {
      if (cluster->end().has_value() || IsTellingTheEnd(cluster)) return;
      cluster->chief().Terminate();
      StartNextOnceEnded(cluster, pause);
    });
    when += pause + absl::Seconds(3);
  }
}

// No save succeeds: the last chief gives up for that reason, and leaves the model to the ps.
std::string SimulateTerminations(uint64_t seed, bool asynchronous) {
  SimOptions options = RandomOptions(seed);
  options.asynchronous = asynchronous;
  options.same_every_time = !asynchronous;
  options.checkpoints = "/dev/null/checkpoints";
  SimCluster cluster(options);
  cluster.StartAll();
  PlanTerminations(seed, &cluster);
  // As long as there are members to read the values as.
  const auto is_trained = [&] { return cluster.global_step() == GlobalStep(options.steps); };
  if (!cluster.RunUntil(is_trained, kLimit)) return "not trained: " + Describe(cluster);
  std::vector<std::string> broken =
      asynchronous ? BrokenAsynchronousLaws(cluster) : BrokenNumbers(cluster);
  if (!asynchronous) {
    for (const std::string& line : BrokenPerReplicaLaws(cluster)) broken.push_back(line);
    SimOptions undisturbed_options = options;
    undisturbed_options.checkpoints = "";
    SimCluster undisturbed(undisturbed_options);
    undisturbed.StartAll();
    if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
    for (const std::string& line : Differences(&cluster, &undisturbed)) broken.push_back(line);
  }
  const auto is_given_up = [&] {
    return cluster.end().has_value() && absl::IsUnavailable(*cluster.end());
  };
  if (!cluster.RunUntil(is_given_up, kLimit)) return "no end: " + Describe(cluster);
  if (!absl::StrContains(cluster.end()->message(), "The ps keep the model")) {
    broken.push_back(cluster.end()->ToString());
  }
  return absl::StrJoin(broken, "; ");
}

TEST_CASE("a chief that is told to end at any moment costs not a bit of the result") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight(500, [](uint64_t seed) { return SimulateTerminations(seed, false); }));
  CHECK(AllAreRight(200, [](uint64_t seed) { return SimulateTerminations(seed, true); }));
}

std::string SimulateOne(uint64_t seed) {
  const SimOptions options = RandomOptions(seed);
  SimCluster undisturbed(options);
  undisturbed.StartAll();
  if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
  SimCluster cluster(options);
  cluster.StartAll();
  PlanRestarts(seed, &cluster);
  if (!cluster.RunToEnd(kLimit)) {
    return "no end: " + Describe(cluster);
  }
  std::vector<std::string> broken = BrokenNumbers(cluster);
  for (const std::string& line : BrokenPerReplicaLaws(cluster)) broken.push_back(line);
  if (!cluster.end()->ok()) broken.push_back(cluster.end()->ToString());
  if (cluster.global_step() != GlobalStep(options.steps)) {
    broken.push_back("not all steps were made");
  }
  for (const std::string& line : Differences(&cluster, &undisturbed)) broken.push_back(line);
  return absl::StrJoin(broken, "; ");
}

TEST_CASE("a chief that dies at any moment costs the job time and not a bit of its result") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight(kSeeds, SimulateOne));
}

// Here the result depends on who comes first, so the laws are all that there is to check.
std::string SimulateLaws(uint64_t seed, bool asynchronous) {
  SimOptions options = RandomOptions(seed);
  options.same_every_time = false;
  options.asynchronous = asynchronous;
  if (!asynchronous) options.token_policy = FIFO;
  SimCluster cluster(options);
  cluster.StartAll();
  PlanRestarts(seed, &cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken =
      asynchronous ? BrokenAsynchronousLaws(cluster) : BrokenNumbers(cluster);
  if (!cluster.end()->ok()) broken.push_back(cluster.end()->ToString());
  if (cluster.global_step() != GlobalStep(options.steps)) {
    broken.push_back("not all steps were made");
  }
  return absl::StrJoin(broken, "; ");
}

TEST_CASE("jobs with a token queue, and asynchronous ones, outlive their chief too") {
  REQUIRE(log::Init("simulation", "error").ok());
  int broken = 0;
  for (uint64_t seed = 0; seed < kSeeds && broken < 5; ++seed) {
    const std::string what = SimulateLaws(seed, seed % 2 == 1);
    if (what.empty()) continue;
    ++broken;
    std::cerr << "seed " << seed << ": " << what << "\n";
  }
  CHECK(broken == 0);
}

TEST_CASE("workers go on with the next chief as the processes that they were") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 1, .ps = 2, .workers = 3, .aggregate = 3, .steps = 40});
  cluster.StartAll();
  REQUIRE(
      cluster.RunUntil([&] { return cluster.global_step() == GlobalStep(10); }, absl::Seconds(9)));
  cluster.chief().Kill();
  cluster.StartChief();
  REQUIRE(cluster.RunToEnd(kLimit));
  CHECK(cluster.end()->ok());
  CHECK(cluster.job().record().start >= GlobalStep(10));
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(cluster.worker(i).starts() == std::vector<GlobalStep>{GlobalStep(0)});
  }
}

TEST_CASE("a worker that dies together with the chief is missed when its lease ends") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 2, .workers = 2, .aggregate = 2, .steps = 40});
  cluster.StartAll();
  REQUIRE(
      cluster.RunUntil([&] { return cluster.global_step() == GlobalStep(10); }, absl::Seconds(9)));
  cluster.chief().Kill();
  cluster.worker(1).Kill();
  cluster.StartChief();
  const auto is_named = [&] {
    return cluster.status().waiting_for().find("worker 1 (worker:2) was lost") != std::string::npos;
  };
  REQUIRE(cluster.RunUntil(is_named, absl::Seconds(7)));
  cluster.worker(1).Start();
  REQUIRE(cluster.RunToEnd(kLimit));
  CHECK(cluster.end()->ok());
  CHECK(BrokenPerReplicaLaws(cluster) == std::vector<std::string>());
}

}  // namespace
}  // namespace lockstep::sim
