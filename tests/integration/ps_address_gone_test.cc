// A ps that is told to end, and whose address ends with it: nothing refuses a connection there.
#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tests/integration/distant_ps.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kLease = absl::Seconds(30);
constexpr absl::Duration kSlowStep = absl::Milliseconds(10);
// An attempt to connect there ends after 5 s.
constexpr absl::Duration kAllowed = absl::Seconds(4);

// One case alone: the network is that of the process.
TEST_CASE("the copy of a ps whose address ends with it serves before a connection has failed") {
  DistantPs job(kLease, kSlowStep);
  REQUIRE(job.has_host());  // the address of another host is that of a process that is there
  job.PauseUntil(100);
  const absl::Duration pause = job.PauseAtEnd();
  WARN(absl::StrFormat("%.2f s without a step, with a lease of %d s", absl::ToDoubleSeconds(pause),
                       absl::ToInt64Seconds(kLease)));
  CHECK(pause < kAllowed);
  const nlohmann::json summary = job.Finish();
  CHECK(summary["start_step"] == 0);
  CHECK(summary["warnings"].empty());
}

}  // namespace
}  // namespace lockstep::test
