// A standby and a ps cannot reach each other, while all others reach both.
#include <signal.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/integration/cut_off_pair.h"

namespace lockstep::test {
namespace {

constexpr int kStandbyHost = 2;

// They say themselves how long it took: "for 2 s" is less than a lease of 2 s and 1 s.
void CheckCut(Cluster* cluster, VirtualNetwork* network, int index, const Cut& cut) {
  const std::string ps_name = absl::StrCat("ps ", index);
  CAPTURE(ps_name, cut.there, cut.back);
  const std::vector<NewOutput> standby = {NewOutput(&cluster->chief(1))};
  const std::vector<NewOutput> ps = {NewOutput(&cluster->ps(index))};
  cut.Apply(network, kStandbyHost, index, true);
  const bool standby_misses_ps =
      WaitForAll(standby, absl::StrCat("no contact with ", ps_name, " for 2 s"));
  const bool ps_misses_standby = WaitForAll(ps, "no contact with chief 1 for 2 s");
  const bool goes_on = MakesSteps(cluster);
  cut.Apply(network, kStandbyHost, index, false);
  const bool standby_has_ps = WaitForAll(standby, absl::StrCat("contact with ", ps_name, " again"));
  const bool ps_has_standby = WaitForAll(ps, "contact with chief 1 again");
  INFO(cluster->Logs());
  CHECK(standby_misses_ps);
  CHECK(ps_misses_standby);
  CHECK(goes_on);
  CHECK(standby_has_ps);
  CHECK(ps_has_standby);
}

// One case alone: the network is that of the process.
TEST_CASE("a standby and a ps name each other, the job goes on, and the standby takes over later") {
  VirtualNetwork network = EnterHosts(3);
  Cluster cluster(2, 2, 2);
  UseHosts(network, &cluster);
  cluster.SlowDown(absl::Milliseconds(5));
  cluster.StartAll(EndlessJob(), kTwoSecondLease);
  cluster.StartStandby(1, kTwoSecondLease);
  REQUIRE(cluster.chief(1).WaitForOutput(" commands, with a lease of 2.0 s", kPatience));
  REQUIRE(cluster.WaitForStep(100, kPatience));
  // Ps 0 is where it stands by.
  for (const Cut& cut : kCuts) CheckCut(&cluster, &network, 0, cut);
  CheckCut(&cluster, &network, 1, kCuts[0]);
  CHECK_THAT(cluster.chief(1).Output(), !Catch::Contains("taking command"));
  cluster.chief().Signal(SIGKILL);
  REQUIRE(cluster.chief(1).WaitForOutput("taking over at step", kPatience));
  CHECK(MakesSteps(&cluster, 1));
  CheckCostsNoBit(&cluster, 1);
}

}  // namespace
}  // namespace lockstep::test
