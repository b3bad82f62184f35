// Jobs whose shards have copies at the next ps: what dies or is cut off costs no bit of the result.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("a job with copies computes the bits of one without") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copies", 200));
}

TEST_CASE("a ps that dies while it has a copy costs neither an epoch nor a worker") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_deaths", 30));
}

TEST_CASE("a cut between two of a pair, or to one of them, costs no epoch") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_cuts", 30));
}

TEST_CASE("the chief and a ps, or two ps of a pair, that die at once cost no bit") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_disasters", 100));
}

TEST_CASE("with copies and standbys no role that dies or is stopped costs an epoch or a bit") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_standbys", 15));
}

TEST_CASE("a chief that is stopped or dies while it makes the copies costs time alone") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_starts", 60));
}

// No step was made, so there is nothing to lose. The next chief cannot know whether the ps without
// variables was started again, and makes both anew.
TEST_CASE("a chief that stalls between a shard and its copy leaves a shard that another begins") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 5,
                      .ps = 2,
                      .workers = 2,
                      .chiefs = 2,
                      .aggregate = 2,
                      .steps = 30,
                      .copies = true,
                      .least_compute = absl::Milliseconds(200),
                      .most_compute = absl::Milliseconds(300)});
  cluster.StartAll();
  cluster.chief().StartStandby();
  const auto has_variables = [&](uint32_t ps) {
    return cluster.ps(ps).own().shard().GetView().has_variables;
  };
  REQUIRE(cluster.RunUntil([&] { return has_variables(0) || has_variables(1); }, absl::Seconds(1)));
  cluster.chief().Suspend(absl::Seconds(7));
  REQUIRE(cluster.RunUntil([&] { return has_variables(0) && has_variables(1); }, absl::Seconds(1)));
  for (uint32_t i = 0; i < 2; ++i) {
    REQUIRE_FALSE(cluster.ps(i).copy()->shard().GetView().has_variables);
  }
  REQUIRE(cluster.RunToEnd(kLimit));
  CHECK(cluster.end() == absl::OkStatus());
  CHECK(cluster.chief().commander() == Node{Role::kChief, 1});
  CHECK(cluster.global_step() == GlobalStep(30));
}

TEST_CASE("a ps that was stopped is fenced when it goes on, whatever else happens meanwhile") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_stops", 15));
}

TEST_CASE("a job without copies waits for a ps that is stopped") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("ps_stops", 30));
}

}  // namespace
}  // namespace lockstep::sim
