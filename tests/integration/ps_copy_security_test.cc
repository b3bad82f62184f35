// Copies of shards where every process proves who it is.
#include <signal.h>

#include <catch2/catch.hpp>

#include "absl/time/time.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

TEST_CASE("with a token or certificates a primary reaches its copy, and the copy the workers") {
  const bool has_tls = GENERATE(false, true);
  CAPTURE(has_tls);
  Cluster cluster(2, 2);
  has_tls ? cluster.UseTls() : cluster.UseToken();
  cluster.StartAll({.max_steps = 200, .sync = "ps_replicas: 1"});
  REQUIRE(cluster.WaitForStep(50, absl::Minutes(1)));
  cluster.ps(1).Signal(SIGKILL);
  REQUIRE(cluster.ps(1).Wait(absl::Minutes(1)) == 128 + SIGKILL);
  cluster.StartPs(1);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);
  CHECK(summary["warnings"].empty());
  CHECK_THAT(cluster.chief().Output(),
             Catch::Matchers::Contains("Its copy serves the workers now"));
  // The process that keeps the copy has waited for that.
  CHECK_THAT(cluster.chief().Output(), !Catch::Matchers::Contains("not told that"));
  CHECK_THAT(cluster.ps(0).Output(),
             Catch::Matchers::Contains("the copy of ps 0: reads gradients in shared memory"));
}

}  // namespace
}  // namespace lockstep::test
