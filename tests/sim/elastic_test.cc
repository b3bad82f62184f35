// A job whose workers come and go: the real chief, shards and strategies.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/log/log.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/scenario.h"
#include "tests/sim/sim_cluster.h"

namespace lockstep::sim {
namespace {

TEST_CASE("each step of an elastic job has the gradients of its replica view") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("elastic", 1000));
}

// Nobody else has a part of the batch of that step, so its gradients would be of fewer examples.
TEST_CASE("an elastic step whose replicas have all died waits for them by name") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 9,
                      .workers = 3,
                      .quorum_policy = SHRINK,
                      .steps = 40,
                      .least_compute = absl::Seconds(2),
                      .most_compute = absl::Seconds(3),
                      .min_replicas = 1});
  cluster.StartChief();
  cluster.worker(0).Start();
  REQUIRE(
      cluster.RunUntil([&] { return cluster.worker(0).local_step() == GlobalStep(2); }, kLimit));
  // The others come while it computes, and share later steps.
  const GlobalStep at_hand = cluster.global_step();
  cluster.worker(1).Start();
  cluster.worker(2).Start();
  cluster.worker(0).Kill();
  const auto is_named = [&] {
    return absl::StrContains(cluster.status().waiting_for(), "worker 0 (worker:1) was lost");
  };
  REQUIRE(cluster.RunUntil(is_named, absl::Seconds(10)));
  CAPTURE(cluster.status().state(), cluster.status().waiting_for());
  CHECK_FALSE(
      cluster.RunUntil([&] { return cluster.global_step() > at_hand.next(); }, absl::Minutes(5)));
  CHECK(is_named());
  cluster.worker(0).Start();
  REQUIRE(cluster.RunUntil([&] { return cluster.end().has_value(); }, kLimit));
  CHECK(cluster.end()->ok());
  CHECK(cluster.violation() == "");
}

}  // namespace
}  // namespace lockstep::sim
