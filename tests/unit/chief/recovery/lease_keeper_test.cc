#include "chief/recovery/lease_keeper.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

struct Fixture {
  static RenewLeaseRequest Renewal() {
    RenewLeaseRequest renewal;
    renewal.mutable_command()->set_term(3);
    renewal.set_lease_ms(2000);
    renewal.set_chief_index(1);
    return renewal;
  }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      lease.Tick();
      executor.Run();
    }
  }
  void Answer(absl::StatusOr<RenewLeaseReply> reply = RenewLeaseReply()) {
    ps.renewals.Answer(std::move(reply));
    executor.Run();
  }

  ScriptedPs ps;
  ManualExecutor executor;
  ManualClock clock;
  LeaseKeeper lease{Renewal(), &ps, &executor, &clock};
};

TEST_CASE("a lease is renewed four times in its length, also while calls are not answered") {
  Fixture f;
  f.Pass(absl::Milliseconds(400));
  CHECK(f.ps.renewals.size() == 0);
  f.Pass(absl::Milliseconds(100));
  REQUIRE(f.ps.renewals.size() == 1);
  CHECK(f.ps.renewals.front().command().term() == 3);
  CHECK(f.ps.renewals.front().lease_ms() == 2000);
  CHECK(f.ps.renewals.front().chief_index() == 1);
  f.Pass(absl::Milliseconds(1500));
  CHECK(f.ps.renewals.size() == 4);
}

TEST_CASE("a step shard that is away is no error, one that another chief has is") {
  Fixture f;
  f.Pass(absl::Milliseconds(1000));
  f.Answer(absl::UnavailableError("connection refused"));
  CHECK(f.lease.status().ok());
  f.Answer(absl::AbortedError("another chief commands"));
  CHECK(absl::IsAborted(f.lease.status()));
}

TEST_CASE("a chief may go on with the next term of its job, until another one has commanded") {
  Fixture f;
  Command command;
  command.set_term(4);
  CHECK(f.lease.MayAnnounce(command, false).ok());
  command.set_term(5);
  CHECK(f.lease.MayAnnounce(command, false) ==
        absl::AbortedError("another chief has taken term 4"));
  command.set_term(4);
  command.set_job(0xab);
  CHECK(f.lease.MayAnnounce(command, false) ==
        absl::AbortedError("the ps serve job ab, not job 0: another chief commands"));
  f.Pass(absl::Milliseconds(500));
  f.Answer(absl::AbortedError("term 4 belongs to another chief"));
  command.set_job(0);
  CHECK(f.lease.MayAnnounce(command, false) == f.lease.status());
}

TEST_CASE("after a further view its command renews the lease") {
  Fixture f;
  Command command;
  command.set_term(4);
  f.lease.SetCommand(command);
  f.Pass(absl::Milliseconds(500));
  CHECK(f.ps.renewals.front().command().term() == 4);
}

TEST_CASE("a lease that was ended is not renewed") {
  Fixture f;
  std::optional<absl::Status> told;
  const auto tell = [&](absl::Status status) { told = std::move(status); };
  SECTION("the chief leaves") {
    f.lease.Release(tell);
    CHECK(f.ps.renewals.front().end() == CommandStatus::RELEASED);
  }
  SECTION("the job is given up") {
    f.lease.EndJob(WithExitCode(absl::CancelledError("told to end"), ExitCode::kPeersLost), tell);
    CHECK(f.ps.renewals.front().end() == CommandStatus::JOB_OVER);
    CHECK(f.ps.renewals.front().exit_code() == 138);
    CHECK(f.ps.renewals.front().reason() == "told to end");
  }
  CHECK_FALSE(told.has_value());
  f.Answer();
  CHECK(told == absl::OkStatus());
  f.Pass(absl::Seconds(5));
  CHECK(f.ps.renewals.size() == 0);
}

}  // namespace
}  // namespace lockstep::chief
