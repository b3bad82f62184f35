#include "worker/service/registration.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "tests/unit/worker/service/fake_chief.h"

namespace lockstep::worker {
namespace {

RegisterTaskReply Ready() {
  RegisterTaskReply reply;
  reply.set_ready(true);
  reply.set_start_step(7);
  return reply;
}

// A clock that moves a second whenever it is read.
class TickingClock final : public Clock {
 public:
  absl::Duration Monotonic() const override { return now_ += absl::Seconds(1); }
  absl::Time Wall() const override { return absl::UnixEpoch(); }

 private:
  mutable absl::Duration now_;
};

TEST_CASE("a worker that is not needed yet calls again until the job runs") {
  FakeChief chief;
  RegisterTaskReply not_yet;
  not_yet.set_waiting_for("ps 1 (host:1)");
  chief.registrations = {not_yet, not_yet, Ready()};
  MonotonicNotification stop;
  const auto reply = Register(&chief, {}, {.chief_name = "chief (a:1)"}, &stop);
  REQUIRE(reply.ok());
  CHECK(reply->start_step() == 7);
  CHECK(chief.registrations_seen == 3);
}

TEST_CASE("a registration names the last reply that the process has got") {
  FakeChief chief;
  RegisterTaskReply not_yet;
  not_yet.mutable_id()->set_run(5);
  not_yet.mutable_id()->set_number(1);
  chief.registrations = {not_yet, absl::UnavailableError("the chief is not there"), Ready()};
  MonotonicNotification stop;
  REQUIRE(Register(&chief, {}, {.chief_name = "chief (a:1)"}, &stop).ok());
  CHECK(chief.registrations_seen == 3);
  CHECK(chief.last_registration.last_reply().run() == 5);
  CHECK(chief.last_registration.last_reply().number() == 1);
}

TEST_CASE("a worker that comes after the end is told so") {
  FakeChief chief;
  RegisterTaskReply over;
  over.set_done(true);
  chief.registrations = {over};
  MonotonicNotification stop;
  const auto reply = Register(&chief, {}, {.chief_name = "chief (a:1)"}, &stop);
  REQUIRE(reply.ok());
  CHECK(reply->done());
  CHECK(chief.registrations_seen == 1);
}

TEST_CASE("a chief that cannot be reached ends the start with its name and the time waited") {
  FakeChief chief;
  chief.registrations = {absl::UnavailableError("connection refused")};
  TickingClock clock;
  MonotonicNotification stop;
  const auto reply = Register(
      &chief, {}, {.chief_name = "chief (a:1)", .start_timeout = absl::Seconds(2), .clock = &clock},
      &stop);
  CHECK(reply.status().code() == absl::StatusCode::kUnavailable);
  CHECK(ExitCodeFor(reply.status()) == ExitCode::kPeersLost);
  CHECK(std::string(reply.status().message()).find("chief (a:1) was not reached for 2.0 s") !=
        std::string::npos);
}

TEST_CASE("the chief's refusal is final") {
  FakeChief chief;
  chief.registrations = {absl::AlreadyExistsError("worker 1 runs as pid 9 on host b")};
  MonotonicNotification stop;
  const auto reply = Register(&chief, {}, {.chief_name = "chief"}, &stop);
  CHECK(reply.status().code() == absl::StatusCode::kAlreadyExists);
  CHECK(chief.registrations_seen == 1);
}

TEST_CASE("a worker told to stop stops registering") {
  FakeChief chief;
  chief.registrations = {absl::UnavailableError("connection refused")};
  MonotonicNotification stop;
  stop.Notify();
  CHECK(Register(&chief, {}, {.chief_name = "chief"}, &stop).status().code() ==
        absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace lockstep::worker
