// `lockstep status --watch` of a process that is stopped for a while, and then ends.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);

TEST_CASE("a watched process may be silent for a while, and its end is told") {
  const Cluster cluster(1, 1);
  Process ps(cluster.Ps(0));
  REQUIRE(ps.WaitForOutput("listening", kWhole));
  Process watch({Binary("deploy/cli/status"), cluster.spec().ps[0], "--watch"});
  REQUIRE(watch.WaitForOutput("ps 0", kWhole));
  ps.Signal(SIGSTOP);
  REQUIRE(watch.WaitForOutput("; asking again\n", kWhole));
  ps.Signal(SIGCONT);
  // An empty line comes before each status but the first.
  REQUIRE(watch.WaitForOutput("; asking again\n\n", kWhole));
  ps.Signal(SIGKILL);
  CHECK(watch.Wait(kWhole) == 0);
  CHECK_THAT(watch.Output(), Contains("lockstep status: " + cluster.spec().ps[0] +
                                      " has ended, or cannot be reached: "));
}

}  // namespace
}  // namespace lockstep::test
