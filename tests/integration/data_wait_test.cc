// Batches are prefetched into the memory of the towers: towers that are slower than the loader do
// not wait for data.
#include <catch2/catch.hpp>

#include "absl/time/clock.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kNextLook = absl::Milliseconds(20);
constexpr int kEnoughSteps = 100;

TEST_CASE("towers that are slower than the loader wait for data for less than 2 % of a step") {
  Cluster cluster(1, 1);
  std::vector<std::string> worker = cluster.Worker(0);
  worker.push_back("--sleep=20ms");
  Process ps(cluster.Ps(0));
  Process slow(std::move(worker));
  Process chief(cluster.Chief(cluster.WriteJob({.max_steps = 1'000'000, .more = "towers: 2 "})));
  WorkerStatus status;
  const absl::Time deadline = absl::Now() + kPatience;
  while (status.local_step() < kEnoughSteps && absl::Now() < deadline && !slow.Wait(kNextLook)) {
    const auto fetched = FetchStatus(cluster.spec().workers[0], absl::Seconds(1));
    if (fetched.ok()) status = fetched->worker();
  }
  REQUIRE(status.local_step() >= kEnoughSteps);
  REQUIRE(status.seconds_training() > 0.02 * kEnoughSteps);
  CHECK(status.seconds_waiting_for_data() < 0.02 * status.seconds_training());
}

}  // namespace
}  // namespace lockstep::test
