// Copies of shards where every process proves who it is.
#include <signal.h>

#include <catch2/catch.hpp>

#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

TEST_CASE("with a token or certificates a primary reaches its copy, and the copy the workers") {
  const bool has_tls = GENERATE(false, true);
  CAPTURE(has_tls);
  Cluster cluster(2, 2);
  has_tls ? cluster.UseTls() : cluster.UseToken();
  cluster.StartAll({.max_steps = 600, .sync = "ps_replicas: 1"});
  REQUIRE(cluster.WaitForStep(50, absl::Minutes(1)));
  cluster.ps(1).Signal(SIGKILL);
  REQUIRE(cluster.ps(1).Wait(absl::Minutes(1)) == 128 + SIGKILL);
  REQUIRE(cluster.chief().WaitForOutput("Its copy serves the workers now", absl::Minutes(1)));
  const auto status = FetchStatus(cluster.spec().chief, absl::Seconds(10), cluster.credentials());
  REQUIRE(status.ok());
  const ShardSummary& moved = status->job().shards(1);
  CHECK(moved.serving_address() != cluster.spec().ps[1]);
  CHECK(moved.copy_address().empty());
  CHECK(status->job().shards(0).serving_address() == cluster.spec().ps[0]);
  cluster.StartPs(1);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);
  CHECK(summary["warnings"].empty());
  // The process that keeps the copy has waited for that.
  CHECK_THAT(cluster.chief().Output(), !Catch::Matchers::Contains("not told that"));
  CHECK_THAT(cluster.ps(0).Output(),
             Catch::Matchers::Contains("the copy of ps 0: reads gradients in shared memory"));
}

}  // namespace
}  // namespace lockstep::test
