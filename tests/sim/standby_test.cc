// Chiefs that stand by while the one that commands is killed, stopped or told to end at any moment.
// With every replica needed the job computes the same as without, to the last bit.
#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "common/log/log.h"
#include "tests/sim/laws.h"
#include "tests/sim/seeds.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(30);
constexpr uint64_t kSeeds = 2000;

SimOptions RandomOptions(uint64_t seed) { return SmallJob(seed, Random(seed ^ 0x57a4d)); }

// Once the end is being told, another chief has nothing to take over.
bool IsTellingTheEnd(SimCluster* cluster) {
  return cluster->end().has_value() || cluster->status().state() == "done";
}

// One that has never commanded is started again as it was: nobody would take its place.
void Disturb(SimCluster* cluster, Random* random) {
  if (IsTellingTheEnd(cluster)) return;
  SimChiefs& chief = cluster->chief();
  const int kind = random->Between(0, 2);
  if (kind == 0 || !chief.has_commanded()) {
    chief.Kill();
    chief.has_commanded() ? chief.StartStandby() : chief.Start();
  } else if (kind == 1) {
    chief.Terminate();
    chief.StartStandby();
  } else {
    chief.Suspend(random->Between(absl::ZeroDuration(), absl::Seconds(20)));
    chief.StartStandby();
  }
}

void PlanDisturbances(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t times = random->Between(1, 4); times > 0; --times) {
    when += random->Between(absl::ZeroDuration(), absl::Milliseconds(120));
    cluster->events().After(when, [cluster, random] { Disturb(cluster, random.get()); });
    if (random->Chance(0.5)) when += random->Between(absl::ZeroDuration(), absl::Seconds(8));
  }
}

// A process that was not killed is done, was told to end, or has found another one in its place.
std::string BadEnds(const SimCluster& cluster, SimChiefs* chief) {
  std::vector<std::string> bad;
  if (!cluster.end()->ok()) bad.push_back("the chief: " + cluster.end()->ToString());
  for (const absl::Status& end : chief->Ends()) {
    if (end.ok() || absl::IsCancelled(end) || absl::IsAborted(end)) continue;
    bad.push_back(end.ToString());
  }
  return absl::StrJoin(bad, "; ");
}

std::string SimulateOne(uint64_t seed) {
  const SimOptions options = RandomOptions(seed);
  SimCluster undisturbed(options);
  undisturbed.StartAll();
  if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
  const auto random = std::make_shared<Random>(seed ^ 0xdead);
  SimCluster cluster(options);
  cluster.StartAll();
  for (int64_t standbys = random->Between(1, 3); standbys > 0; --standbys) {
    cluster.chief().StartStandby();
  }
  PlanDisturbances(random, &cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  // Standbys, and chiefs that are still stopped.
  cluster.RunUntil([] { return false; }, absl::Seconds(30));
  std::vector<std::string> broken = BrokenNumbers(cluster);
  for (const std::string& line : BrokenPerReplicaLaws(cluster)) broken.push_back(line);
  if (const std::string bad = BadEnds(cluster, &cluster.chief()); !bad.empty()) {
    broken.push_back(bad);
  }
  if (cluster.global_step() != GlobalStep(options.steps)) {
    broken.push_back("not all steps were made");
  }
  for (const std::string& line : Differences(&cluster, &undisturbed)) broken.push_back(line);
  return absl::StrJoin(broken, "; ");
}

TEST_CASE("chiefs that stand by take over at any moment, and cost not a bit of the result") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight(kSeeds, SimulateOne));
}

TEST_CASE("a killed chief costs a lease, of two standbys one takes over") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 1, .ps = 2, .workers = 3, .aggregate = 3, .steps = 40});
  cluster.StartAll();
  cluster.chief().StartStandby();
  cluster.chief().StartStandby();
  REQUIRE(
      cluster.RunUntil([&] { return cluster.global_step() == GlobalStep(10); }, absl::Seconds(9)));
  const absl::Duration killed = cluster.events().Monotonic();
  cluster.chief().Kill();
  const auto goes_on = [&] { return cluster.global_step() > GlobalStep(11); };
  REQUIRE(cluster.RunUntil(goes_on, absl::Seconds(9)));
  const absl::Duration pause = cluster.events().Monotonic() - killed;
  CHECK(pause > absl::Seconds(3));
  CHECK(pause < absl::Milliseconds(5500));
  REQUIRE(cluster.RunToEnd(kLimit));
  CHECK(cluster.RunUntil([] { return false; }, absl::Seconds(5)) == false);
  CHECK(cluster.chief().Ends() == std::vector<absl::Status>(2, absl::OkStatus()));
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(cluster.worker(i).starts() == std::vector<GlobalStep>{GlobalStep(0)});
  }
}

TEST_CASE("a worker that is killed with the chief and started again costs no second lease") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 3, .ps = 2, .workers = 2, .aggregate = 2, .steps = 40});
  cluster.StartAll();
  cluster.chief().StartStandby();
  REQUIRE(
      cluster.RunUntil([&] { return cluster.global_step() == GlobalStep(10); }, absl::Seconds(9)));
  const absl::Duration killed = cluster.events().Monotonic();
  cluster.chief().Kill();
  cluster.worker(1).Start();
  const auto goes_on = [&] { return cluster.global_step() > GlobalStep(12); };
  REQUIRE(cluster.RunUntil(goes_on, absl::Seconds(9)));
  CHECK(cluster.events().Monotonic() - killed < absl::Seconds(6));  // a lease and 1 s
  REQUIRE(cluster.RunToEnd(kLimit));
  CHECK(cluster.end()->ok());
  CHECK(cluster.worker(0).starts() == std::vector<GlobalStep>{GlobalStep(0)});
  CHECK(cluster.worker(1).starts().size() == 2);
}

TEST_CASE("a chief that is told to end costs no lease") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 2, .ps = 2, .workers = 2, .aggregate = 2, .steps = 40});
  cluster.StartAll();
  cluster.chief().StartStandby();
  REQUIRE(
      cluster.RunUntil([&] { return cluster.global_step() == GlobalStep(10); }, absl::Seconds(9)));
  const absl::Duration told = cluster.events().Monotonic();
  cluster.chief().Terminate();
  const auto goes_on = [&] { return cluster.global_step() > GlobalStep(12); };
  REQUIRE(cluster.RunUntil(goes_on, absl::Seconds(9)));
  CHECK(cluster.events().Monotonic() - told < absl::Milliseconds(300));
  REQUIRE(cluster.RunToEnd(kLimit));
  CHECK(cluster.end()->ok());
}

}  // namespace
}  // namespace lockstep::sim
