// Chiefs that stand by while the one that commands is killed, stopped or told to end at any moment.
// With every replica needed the job computes the same as without, to the last bit.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("chiefs that stand by take over at any moment, and cost not a bit of the result") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("standbys", 2000));
}

TEST_CASE("they do so too where messages go in one direction alone") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("standbys_cut", 800));
}

TEST_CASE("a worker whose registration comes late in a take-over costs not a bit either") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("standbys_late_worker", 300));
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

TEST_CASE("a ps that was stopped for longer than a lease replaces no chief that lives") {
  REQUIRE(log::Init("simulation", "error").ok());
  const absl::Duration when = absl::Seconds(3) + GENERATE(range(0, 25)) * absl::Milliseconds(100);
  const absl::Duration pause = absl::Seconds(GENERATE(6, 12, 19));
  CAPTURE(when, pause);
  SimCluster cluster({.seed = 4,
                      .ps = 2,
                      .workers = 2,
                      .aggregate = 2,
                      .steps = 40,
                      .least_compute = absl::Milliseconds(200),
                      .most_compute = absl::Milliseconds(300)});
  cluster.StartAll();
  cluster.chief().StartStandby();
  cluster.events().After(when, [&cluster, pause] { cluster.ps(0).Suspend(pause); });
  REQUIRE(cluster.RunToEnd(kLimit));
  CHECK(cluster.end()->ok());
  CHECK(cluster.chief().commander() == Node{Role::kChief, 0});
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
