// A ps and the one that keeps its copy cannot reach each other, while all others reach both.
#include <catch2/catch.hpp>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/integration/cut_off_pair.h"

namespace lockstep::test {
namespace {

// One case alone: the network is that of the process.
//
// The ps say themselves how long it took: "for 2 s" is less than a lease of 2 s and 1 s.
TEST_CASE("a ps and the one that keeps its copy name each other, and the job goes on without it") {
  VirtualNetwork network = EnterHosts(3);
  // Of three ps the second keeps the copy of the first, but not the other way round.
  Cluster cluster(3, 2);
  UseHosts(network, &cluster);
  cluster.SlowDown(absl::Milliseconds(5));
  cluster.StartAll(EndlessJob("ps_replicas: 1"), kTwoSecondLease);
  REQUIRE(cluster.WaitForStep(100, kPatience));
  for (const Cut& cut : kCuts) {
    CAPTURE(cut.there, cut.back);
    const std::vector<NewOutput> primary = {NewOutput(&cluster.ps(0))};
    const std::vector<NewOutput> copy = {NewOutput(&cluster.ps(1))};
    const std::vector<NewOutput> chief = {NewOutput(&cluster.chief())};
    cut.Apply(&network, 0, 1, true);
    const bool primary_misses_copy = WaitForAll(primary, "no contact with ps 1 for 2 s");
    const bool copy_misses_primary = WaitForAll(copy, "no contact with ps 0 for 2 s");
    const bool is_alone = WaitForAll(chief, "The shard goes on without a copy");
    // The chief reaches that ps and lets it become the copy at once. Steps do not wait for it.
    const bool becomes_copy = WaitForAll(chief, "becomes the copy of the shard of ps 0");
    const bool goes_on = MakesSteps(&cluster);
    const bool is_given_up = chief[0].WaitFor("is given up", absl::Now());
    const bool stays_missed = !primary[0].WaitFor("contact with ps 1 again", absl::Now());
    cut.Apply(&network, 0, 1, false);
    const bool copy_has_primary = WaitForAll(copy, "contact with ps 0 again");
    const bool has_copy = WaitForAll(chief, "each shard has a copy: the job survives");
    INFO(cluster.Logs());
    CHECK(primary_misses_copy);
    CHECK(copy_misses_primary);
    CHECK(is_alone);
    CHECK(stays_missed);
    CHECK(becomes_copy);
    CHECK(goes_on);
    CHECK_FALSE(is_given_up);
    CHECK(copy_has_primary);
    REQUIRE(has_copy);
  }
  CheckCostsNoBit(&cluster);
}

}  // namespace
}  // namespace lockstep::test
