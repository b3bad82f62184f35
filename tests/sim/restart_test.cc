// The chief dies at any moment and another one takes over from the shards as they are. With every
// replica needed the job computes the same as without, to the last bit.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("a chief that is told to end at any moment costs not a bit of the result") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("chief_terminations", 500));
  CHECK(AllAreRight("chief_terminations_asynchronous", 200));
}

TEST_CASE("a chief that dies at any moment costs the job time and not a bit of its result") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("chief_deaths", 2000));
}

TEST_CASE("jobs with a token queue, and asynchronous ones, outlive their chief too") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("chief_deaths_fifo", 1000));
  CHECK(AllAreRight("chief_deaths_asynchronous", 1000));
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
  CHECK(cluster.violation() == "");
}

}  // namespace
}  // namespace lockstep::sim
