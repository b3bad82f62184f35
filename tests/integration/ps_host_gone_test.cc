// A ps whose host vanishes: its connections stay open, and nothing answers any more.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tests/integration/distant_ps.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kLease = absl::Seconds(2);
// A machine at work takes longer than lease + 1 s.
constexpr absl::Duration kAllowed = absl::Seconds(5);

// One case alone: the network is that of the process.
TEST_CASE("a ps whose host vanishes is replaced by its copy after a lease, and costs no bit") {
  DistantPs job(kLease);
  job.PauseUntil(100);
  job.Vanish();
  const absl::Duration pause = job.PauseUntil(job.Step() + 20);
  WARN(absl::StrFormat("%s: %.2f s without a step, with a lease of %d s", job.how(),
                       absl::ToDoubleSeconds(pause), absl::ToInt64Seconds(kLease)));
  CHECK(pause > absl::Milliseconds(500));  // a step was waited for
  CHECK(pause < kAllowed);
  const nlohmann::json summary = job.Finish();
  CHECK(summary["start_step"] == 0);
  CHECK(summary["warnings"].empty());

  Cluster calm(2, 2);
  calm.StartAll(DistantPs::Job(""), {"--record_losses"});
  CHECK(Losses(Finish(calm)) == Losses(summary));
  CHECK(TensorsOf(calm.folder().Path(absl::StrCat("checkpoints/ckpt-", DistantPs::kNumSteps))) ==
        job.tensors());
}

}  // namespace
}  // namespace lockstep::test
