// Too few workers: each quorum policy does what it says, and the numbers are right all the same.
#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/exit_code.h"
#include "common/log/log.h"
#include "tests/sim/laws.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

using Catch::Matchers::Contains;

// A lease, and the ticks and messages until everybody knows that it has ended.
constexpr absl::Duration kLeaseAndMore = absl::Seconds(7);
constexpr uint64_t kSeeds = 1000;

std::string Broken(SimCluster& cluster) {
  if (!cluster.RunUntil([&] { return cluster.end().has_value(); }, kLimit)) {
    return "no end: " + Describe(cluster);
  }
  std::vector<std::string> broken;
  AppendBadEnd(cluster, &broken);
  return absl::StrJoin(broken, "; ");
}

// All workers register before anybody dies.
bool Begin(SimCluster* cluster) {
  cluster->StartAll();
  return cluster->RunUntil([&] { return cluster->status().state() == "training"; }, kLimit);
}

TEST_CASE("WAIT: nobody waits for ever while as many live as a step needs") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("wait", kSeeds));
}

TEST_CASE("SHRINK: the job is done as long as one worker lives") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("shrink", kSeeds));
}

TEST_CASE("SHRINK: steps need fewer gradients only when every ps knows who is gone") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("shrink_views", kSeeds));
}

TEST_CASE("ABORT: the job ends with an error when too few live, and only then") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("abort", kSeeds));
}

TEST_CASE("ABORT does not end a job whose worker has a successor before the lease ends") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster(
      {.seed = 5, .workers = 3, .aggregate = 3, .quorum_policy = ABORT, .steps = 10});
  REQUIRE(Begin(&cluster));
  cluster.worker(2).Kill();
  cluster.worker(2).Start();
  CHECK(Broken(cluster) == "");
}

TEST_CASE("SHRINK grows back when the successor comes, and its tokens wait for nobody") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimOptions options{
      .seed = 6, .workers = 3, .aggregate = 3, .quorum_policy = SHRINK, .steps = 100000};
  SimCluster cluster(options);
  REQUIRE(Begin(&cluster));
  const auto passes = [&](GlobalStep step) {
    return cluster.RunUntil([&] { return cluster.global_step() >= step; }, absl::Seconds(30));
  };
  REQUIRE(passes(GlobalStep(5)));
  cluster.worker(2).Kill();
  const auto has_shrunk = [&] { return cluster.status().job().required_now() == 2; };
  REQUIRE(cluster.RunUntil(has_shrunk, kLeaseAndMore));
  const size_t tokens = cluster.history().tokens.size();
  const GlobalStep shrunk = cluster.global_step();
  REQUIRE(passes(GlobalStep(shrunk.value() + 20)));
  for (size_t i = tokens; i < cluster.history().tokens.size(); ++i) {
    CHECK(cluster.history().tokens[i].worker != WorkerIndex(2));
  }
  cluster.worker(2).Start();
  const auto has_grown = [&] { return cluster.status().job().required_now() == 3; };
  REQUIRE(cluster.RunUntil(has_grown, kLeaseAndMore));
  // The step at hand may have closed before.
  const GlobalStep grown(cluster.global_step().value() + 2);
  REQUIRE(passes(GlobalStep(grown.value() + 10)));
  for (GlobalStep step = grown; step < GlobalStep(grown.value() + 10); step = step.next()) {
    CHECK(cluster.history().Accepted(0, step) == 3);
  }
  CHECK(cluster.violation() == "");
}

TEST_CASE("under WAIT the successor goes on with the token of the one that died") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 7, .workers = 2, .aggregate = 2, .steps = 9});
  REQUIRE(Begin(&cluster));
  REQUIRE(
      cluster.RunUntil([&] { return cluster.worker(1).local_step() == GlobalStep(4); }, kLimit));
  cluster.worker(1).Kill();
  const auto is_named = [&] {
    return cluster.status().waiting_for().find("worker 1 (worker:2) was lost") != std::string::npos;
  };
  REQUIRE(cluster.RunUntil(is_named, kLeaseAndMore));
  CHECK(cluster.global_step() == GlobalStep(4));
  cluster.worker(1).Start();
  REQUIRE(Broken(cluster) == "");
  CHECK(cluster.worker(1).starts().back() == GlobalStep(4));
}

// tensorflow#20342: 60 of 64 replicas are aggregated, and 27 run out of data.
SimOptions Issue20342(TokenPolicy tokens, QuorumPolicy quorum) {
  return {.seed = 20342,
          .workers = 64,
          .aggregate = 60,
          .token_policy = tokens,
          .quorum_policy = quorum,
          .steps = 12,
          .variables = {1},
          .short_of_data = 27,
          .batches = 4};
}

TEST_CASE("tensorflow#20342: a queue loses stamps with those who leave, and the chief says so") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster waiting(Issue20342(FIFO, WAIT));
  waiting.StartAll();
  const auto is_short = [&] {
    return waiting.status().waiting_for().find("with its local_step can exist") !=
           std::string::npos;
  };
  REQUIRE(waiting.RunUntil(is_short, absl::Seconds(2)));
  const std::string text = waiting.status().waiting_for();
  CHECK_THAT(text, Contains("; the step needs 60 gradients of each variable, at most "));
  // It names eight of those that keep it waiting, and none that merely waits.
  CHECK(std::vector<std::string>(absl::StrSplit(text, " is out of data since step ")).size() ==
        1 + 8);
  CHECK_THAT(text, !Contains(" computes step "));
  const GlobalStep stuck = waiting.global_step();
  CHECK_FALSE(waiting.RunUntil([&] { return waiting.end().has_value(); }, absl::Minutes(5)));
  CHECK(waiting.global_step() == stuck);
  CHECK(waiting.history().Pushes(0, stuck) < 60);
  CHECK(BrokenFifoLaws(waiting) == std::vector<std::string>());

  SimCluster aborting(Issue20342(FIFO, ABORT));
  aborting.StartAll();
  REQUIRE(aborting.RunUntil([&] { return aborting.end().has_value(); }, absl::Seconds(5)));
  CHECK_THAT(std::string(aborting.end()->message()), Contains("with its local_step can exist"));
}

TEST_CASE("tensorflow#20342: per replica the chief names who has no data, or goes on without") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster waiting(Issue20342(PER_REPLICA, WAIT));
  waiting.StartAll();
  const auto is_short = [&] {
    return waiting.status().waiting_for().find("37 workers live and have data") !=
           std::string::npos;
  };
  REQUIRE(waiting.RunUntil(is_short, absl::Seconds(2)));
  CHECK_THAT(waiting.status().waiting_for(),
             Contains("worker 0 (worker:1) is out of data since step 4"));

  SimCluster shrinking(Issue20342(PER_REPLICA, SHRINK));
  shrinking.StartAll();
  CHECK(Broken(shrinking) == "");
  CHECK(shrinking.history().Accepted(0, GlobalStep(10)) == 37);

  SimCluster aborting(Issue20342(PER_REPLICA, ABORT));
  aborting.StartAll();
  REQUIRE(aborting.RunUntil([&] { return aborting.end().has_value(); }, absl::Seconds(5)));
  CHECK(ExitCodeFor(*aborting.end()) == ExitCode::kPeersLost);
}

TEST_CASE("when the data of all has ended a job that shrinks ends with an error") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 8,
                      .workers = 2,
                      .aggregate = 2,
                      .quorum_policy = SHRINK,
                      .steps = 12,
                      .short_of_data = 2,
                      .batches = 4});
  cluster.StartAll();
  REQUIRE(cluster.RunUntil([&] { return cluster.end().has_value(); }, absl::Seconds(5)));
  CHECK_THAT(std::string(cluster.end()->message()), Contains("is out of data since step 4"));
}

}  // namespace
}  // namespace lockstep::sim
