// What a run does about processes that are lost.
#include <catch2/catch.hpp>
#include <string>

#include "common/base/exit_code.h"
#include "tests/unit/chief/service/job_run_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE(
    "after ten seconds without a step the status names who is missing and what is waited for") {
  ProcessStatus asked;
  VariableStatus* pending = asked.mutable_shard()->add_pending();
  pending->set_name("fc/kernel");
  pending->set_have(0);
  pending->set_required(1);
  JobRunFixture f(TwoWorkerPlan(4), [asked](const std::string&) { return asked; });
  f.Register(0, 10);
  f.Beat(0, 10);
  f.Step();
  f.Pass(absl::Seconds(9));
  CHECK(f.Status().state() == "training");
  CHECK(f.Status().waiting_for().empty());
  f.Pass(absl::Seconds(2));
  const ProcessStatus status = f.Status();
  CHECK(status.state() == "waiting");
  CHECK(status.waiting_for().find("step 1 for 11.0 s: it needs 1 gradient of each variable; ") !=
        std::string::npos);
  CHECK(status.waiting_for().find("worker 0 (127.0.0.1:2) was lost") != std::string::npos);
  CHECK(status.waiting_for().find("worker 1 (127.0.0.1:3) has not registered") !=
        std::string::npos);
  CHECK(status.job().members(0).state() == "lost");
  // A successor is admitted and steps go on.
  const auto successor = f.Register(0, 11);
  REQUIRE(successor->has_value());
  CHECK((**successor)->ready());
  CHECK((**successor)->start_step() == 1);
  f.Step();
  CHECK(f.Status().state() == "training");
}

TEST_CASE("a member that is lost leaves the view of every shard") {
  JobRunFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  f.Register(1, 20);
  REQUIRE(f.ps.set_view.all().back().members_size() == 2);
  for (int i = 0; i < 6; ++i) {
    f.Beat(1, 20);
    f.Pass(absl::Seconds(1));
  }
  REQUIRE(f.ps.set_view.all().back().members_size() == 1);
  CHECK(f.ps.set_view.all().back().members(0).incarnation() == 20);
}

TEST_CASE("a ps that is lost is named, and ends the job after the patience") {
  JobRunFixture f(TwoWorkerPlan(4));
  f.Register(0, 10);
  for (int second = 0; second < 70 && !f.ended.has_value(); ++second) {
    while (f.ps.grants.size() > 0) {
      f.ps.grants.Answer(absl::UnavailableError("ps 0 (127.0.0.1:1) is not available: refused"));
      f.Settle();
    }
    if (second == 15) {
      CHECK(f.Status().waiting_for().find("ps 0 (127.0.0.1:1) is not available") !=
            std::string::npos);
      CHECK(f.Status().job().shards(0).state() == "unreachable");
    }
    f.Pass(absl::Seconds(1));
    f.Beat(0, 10);
  }
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
  CHECK(f.ps.finishes.all().size() == 1);
}

}  // namespace
}  // namespace lockstep::chief
