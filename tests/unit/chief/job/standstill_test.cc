// What counts, and what does not, while the chief is stopped and goes on.
#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE("time in which the chief stands still is not of its patience with a start") {
  JobFixture f(TwoWorkerPlan(2));
  f.Pass(absl::Seconds(1));
  f.clock.Advance(absl::Seconds(200));
  f.Pass(absl::Seconds(58));
  CHECK_FALSE(f.ended.has_value());
  f.Pass(absl::Seconds(2));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
}

TEST_CASE("time in which the chief stands still is not of a worker's lease") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Pass(absl::Seconds(4));
  f.clock.Advance(absl::Seconds(200));
  f.Pass(absl::Seconds(0.9));
  CHECK(f.Status().job().members(0).state() == "live");
  f.Pass(absl::Seconds(0.3));
  CHECK(f.Status().job().members(0).state() == "lost");
}

// The step shard's clock has run on.
TEST_CASE("a chief that stood still renews its lease at the step shard at once") {
  JobFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Pass(absl::Seconds(1.5));
  const size_t renewals = f.ps.renewals.all().size();
  f.clock.Advance(absl::Seconds(4));
  f.Pass(absl::Milliseconds(100));
  CHECK(f.ps.renewals.all().size() == renewals + 1);
}

}  // namespace
}  // namespace lockstep::chief
