// How long a job waits for workers before it ends.
#include <catch2/catch.hpp>

#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE("a chief that was stopped does not count its own absence until the deadline") {
  const bool hears_first = GENERATE(true, false);
  CAPTURE(hears_first);
  JobFixture f(TwoWorkerPlan(100), {.quorum_deadline = absl::Seconds(20)});
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  f.ps_answers = false;
  f.Pass(absl::Seconds(15));  // 10 of them without a worker
  f.clock.Advance(absl::Hours(1));
  // An answer that came meanwhile is handled before or after the clock is looked at.
  if (!hears_first) f.job->Tick();
  f.ps_answers = true;
  f.Settle();
  f.Pass(absl::Seconds(8));
  CHECK(f.ps.finishes.all().empty());
  f.Pass(absl::Seconds(6));
  CHECK(f.ps.finishes.size() == 1);
}

TEST_CASE("an elastic job ends at its deadline when all that share the step at hand are lost") {
  JobPlan plan = TwoWorkerPlan(100);
  plan.job.clear_batch_per_tower();
  plan.job.set_global_batch(12);
  plan.job.mutable_sync()->clear_replicas_to_aggregate();
  plan.job.mutable_sync()->set_min_replicas(1);
  plan.job.mutable_sync()->set_quorum_policy(SHRINK);
  JobFixture f(plan, {.quorum_deadline = absl::Seconds(20)});
  f.Register(0, 10);
  f.Beat(0, 10);
  REQUIRE(f.Status().job().total_num_replicas() == 1);
  // It shares later steps, but not the one at hand.
  f.Register(1, 20);
  HeartbeatRequest ready;
  ready.set_job_id(9);
  ready.set_worker(1);
  ready.set_incarnation(20);
  ready.set_ready(true);
  for (int second = 0; second < 24; ++second) {
    f.Beat(ready);
    f.Pass(absl::Seconds(1));
  }
  CHECK(f.ps.finishes.all().empty());
  for (int second = 0; second < 8; ++second) {
    f.Beat(ready);
    f.Pass(absl::Seconds(1));
  }
  REQUIRE(f.ps.finishes.size() == 1);
  CHECK(f.ps.finishes.front().exit_code() == 138);
}

}  // namespace
}  // namespace lockstep::chief
