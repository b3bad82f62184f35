#include "chief/recovery/command_observer.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;
using Decision = CommandObserver::Decision;

CommandStatus Status(CommandStatus::State state, uint64_t term = 0, uint32_t chief = 0) {
  CommandStatus status;
  status.set_state(state);
  status.set_term(term);
  status.set_chief_index(chief);
  status.set_lease_ms(2000);
  return status;
}

CommandStatus JobOver(int exit_code) {
  CommandStatus status = Status(CommandStatus::JOB_OVER, 3);
  status.set_exit_code(exit_code);
  status.set_reason("because");
  return status;
}

struct Fixture {
  explicit Fixture(ObserverOptions options = {}) : observer(With(std::move(options)), now) {}
  static ObserverOptions With(ObserverOptions options) {
    options.chiefs = {"a:1", "b:2"};
    options.step_shard = "ps 0 (c:3)";
    options.patience = absl::Seconds(60);
    return options;
  }
  Decision On(const CommandStatus& status) { return observer.OnStatus(status, now); }
  Decision OnFailure(absl::Status failure = absl::UnavailableError("connection refused")) {
    return observer.OnFailure(failure, now);
  }

  absl::Duration now = absl::Seconds(100);
  CommandObserver observer;
};

// It has accepted the chief's renewal and has no view yet, so it parks no call for that lease.
TEST_CASE("a step shard that was started again is asked at intervals until it has a term") {
  Fixture f;
  const uint64_t term_before = GENERATE(0, 7);
  if (term_before != 0) f.On(Status(CommandStatus::HELD, term_before));
  const Decision decision = f.On(Status(CommandStatus::HELD, 0, 1));
  CHECK(decision.action == Decision::kAsk);
  CHECK(decision.pause >= absl::Milliseconds(50));
  CHECK(f.observer.Commander() == "chief 1 (b:2)");
  CHECK(f.observer.WaitingFor().empty());
  CHECK(f.observer.highest_term() == term_before);
  CHECK(f.On(Status(CommandStatus::HELD, 8, 1)).pause == absl::ZeroDuration());
  CHECK(f.observer.watched_term() == 8);
}

TEST_CASE("a standby asks on while a chief has its lease, and takes command when it has ended") {
  Fixture f;
  CHECK(f.observer.watched_term() == 0);
  CHECK(f.observer.WaitingFor() == "the first chief to take command");
  const Decision held = f.On(Status(CommandStatus::HELD, 3));
  CHECK(held.action == Decision::kAsk);
  CHECK(held.pause == absl::ZeroDuration());
  CHECK(f.observer.watched_term() == 3);
  CHECK(f.observer.Commander() == "chief 0 (a:1)");
  CHECK(f.observer.WaitingFor().empty());
  f.now += absl::Seconds(2);
  const Decision expired = f.On(Status(CommandStatus::EXPIRED, 3));
  CHECK(expired.action == Decision::kTakeCommand);
  CHECK(expired.why == "chief 0 (a:1) has been silent for longer than its lease of 2.0 s");
}

TEST_CASE("a standby that has just come leaves an expired lease to others first, once") {
  Fixture f;
  f.On(Status(CommandStatus::HELD, 3));
  f.now += absl::Milliseconds(1900);
  const Decision first = f.On(Status(CommandStatus::EXPIRED, 3));
  CHECK(first.action == Decision::kAsk);
  CHECK(first.pause == absl::Milliseconds(300));
  CHECK(f.observer.watched_term() == 3);  // so that the next call is answered at once
  CHECK(f.On(Status(CommandStatus::EXPIRED, 3)).action == Decision::kTakeCommand);
}

TEST_CASE("a standby takes command at once when the chief leaves") {
  Fixture f;
  f.On(Status(CommandStatus::HELD, 3, 1));
  const Decision released = f.On(Status(CommandStatus::RELEASED, 3, 1));
  CHECK(released.action == Decision::kTakeCommand);
  CHECK_THAT(released.why, Contains("chief 1 (b:2) has ended"));
}

TEST_CASE("an index outside the cluster spec is named without an address") {
  Fixture f;
  f.On(Status(CommandStatus::HELD, 3, 7));
  CHECK(f.observer.Commander() == "chief 7");
}

TEST_CASE("the terms that a standby has heard of are those of chiefs and of faster standbys") {
  Fixture f;
  f.On(Status(CommandStatus::HELD, 3));
  CHECK(f.observer.highest_term() == 3);
  f.observer.NoteTerm(5);
  f.On(Status(CommandStatus::HELD, 4));
  CHECK(f.observer.highest_term() == 5);
  CHECK(f.observer.watched_term() == 4);
}

TEST_CASE("a job that is done ends its standby well, one that was given up with its code") {
  Fixture f;
  f.On(Status(CommandStatus::HELD, 3));
  const Decision done = f.On(JobOver(0));
  CHECK(done.action == Decision::kEnd);
  CHECK(done.end.ok());
  for (const int code : {79, 130, 138}) {
    const Decision given_up = f.On(JobOver(code));
    CHECK(given_up.action == Decision::kEnd);
    CHECK(static_cast<int>(ExitCodeFor(given_up.end)) == code);
    CHECK(given_up.end.message() == "the job was given up: because");
  }
  CHECK(ExitCodeFor(f.On(JobOver(-5)).end) == ExitCode::kBug);
}

TEST_CASE("a job that was given up before the standby came goes on where that can help") {
  CHECK(Fixture().On(JobOver(138)).action == Decision::kTakeCommand);
  CHECK(Fixture().On(JobOver(79)).action == Decision::kEnd);
  CHECK(Fixture().On(JobOver(0)).action == Decision::kEnd);
}

TEST_CASE("a step shard that was started again has a lease to be called by its chief") {
  Fixture f;
  f.On(Status(CommandStatus::HELD, 3));
  CHECK(f.On(Status(CommandStatus::NONE)).pause == absl::Milliseconds(100));
  f.now += absl::Milliseconds(1900);
  CHECK(f.On(Status(CommandStatus::NONE)).action == Decision::kAsk);
  CHECK(f.On(Status(CommandStatus::HELD, 3)).action == Decision::kAsk);
  f.now += absl::Seconds(10);
  CHECK(f.On(Status(CommandStatus::NONE)).action == Decision::kAsk);
  f.now += absl::Seconds(2);
  const Decision silent = f.On(Status(CommandStatus::NONE));
  CHECK(silent.action == Decision::kTakeCommand);
  CHECK(silent.why ==
        "ps 0 (c:3) was started again, and chief 0 (a:1) has not called it for 2.0 s");
}

TEST_CASE("chief 0 begins where none has commanded, others wait for the first one") {
  Fixture first({.begins = true});
  CHECK(first.observer.watched_term() != 0);  // so that the call is not parked
  CHECK(first.On(Status(CommandStatus::NONE)).action == Decision::kTakeCommand);
  Fixture other;
  CHECK(other.On(Status(CommandStatus::NONE)).action == Decision::kAsk);
  other.now += absl::Seconds(59);
  CHECK(other.observer.OnTick(other.now).action == Decision::kAsk);
  other.now += absl::Seconds(1);
  const Decision end = other.observer.OnTick(other.now);
  CHECK(end.action == Decision::kEnd);
  CHECK(ExitCodeFor(end.end) == ExitCode::kPeersLost);
  CHECK_THAT(std::string(end.end.message()), Contains("Remedy: "));
}

TEST_CASE("a standby that knows a chief waits for its end without a limit") {
  Fixture f;
  f.On(Status(CommandStatus::HELD, 3));
  CHECK(f.observer.OnTick(f.now + absl::Hours(1000)).action == Decision::kAsk);
}

TEST_CASE("a step shard that is away is asked again until patience ends") {
  Fixture f;
  CHECK(f.OnFailure(absl::DeadlineExceededError("parked")).pause == absl::ZeroDuration());
  const Decision first = f.OnFailure();
  CHECK(first.action == Decision::kAsk);
  CHECK(first.pause > absl::ZeroDuration());
  CHECK(f.observer.WaitingFor() == "ps 0 (c:3): connection refused");
  for (int seconds = 1; seconds < 60; ++seconds) {
    f.now += absl::Seconds(1);
    CHECK(f.OnFailure().action == Decision::kAsk);
  }
  f.now += absl::Seconds(1);
  const Decision last = f.OnFailure();
  CHECK(last.action == Decision::kEnd);
  CHECK(ExitCodeFor(last.end) == ExitCode::kPeersLost);
  CHECK_THAT(std::string(last.end.message()), Contains("ps 0 (c:3) was not reached for 60 s"));
}

TEST_CASE("a standby of a job that is done ends well when no ps is left") {
  Fixture f({.is_done = true});
  CHECK(f.OnFailure().action == Decision::kAsk);
  f.now += absl::Seconds(1);
  const Decision end = f.OnFailure();
  CHECK(end.action == Decision::kEnd);
  CHECK(end.end.ok());
}

// That checkpoint was an earlier run's: the chief that commands has begun another one.
TEST_CASE("a standby of a chief that commands takes no earlier checkpoint for the job's end") {
  Fixture f({.is_done = true});
  f.On(Status(CommandStatus::HELD, 3));
  f.OnFailure();
  for (int seconds = 1; seconds < 60; ++seconds) {
    f.now += absl::Seconds(1);
    CHECK(f.OnFailure().action == Decision::kAsk);
  }
  f.now += absl::Seconds(1);
  CHECK(ExitCodeFor(f.OnFailure().end) == ExitCode::kPeersLost);
}

TEST_CASE("a standby that has found the job undone asks on") {
  Fixture f({.is_done = true});
  f.OnFailure();
  f.now += absl::Seconds(1);
  REQUIRE(f.OnFailure().action == Decision::kEnd);
  f.observer.ForgetEnd();
  CHECK(f.OnFailure().action == Decision::kAsk);
}

TEST_CASE("a standby that is refused where it has stood by awaits the cluster spec's change") {
  Fixture f;
  const absl::Status refusal = absl::FailedPreconditionError("another cluster spec");
  f.On(Status(CommandStatus::HELD, 3));
  for (int time = 0; time < 2; ++time) {
    for (int seconds = 0; seconds < 60; ++seconds) {
      CHECK(f.OnFailure(refusal).pause == absl::Seconds(1));
      f.now += absl::Seconds(1);
    }
    CHECK(f.observer.WaitingFor() == "ps 0 (c:3): another cluster spec");
    if (time > 0) continue;
    // It is asked again, and who commands has not changed.
    f.OnFailure(absl::DeadlineExceededError("parked"));
    CHECK(f.observer.WaitingFor().empty());
  }
  CHECK(f.OnFailure(refusal).end == refusal);
}

TEST_CASE("a standby that the step shard refuses at once ends") {
  Fixture f;
  const Decision end = f.OnFailure(absl::FailedPreconditionError("another version"));
  CHECK(end.action == Decision::kEnd);
  CHECK(ExitCodeFor(end.end) == ExitCode::kBadConfiguration);
}

TEST_CASE("an error that repeating does not repair ends the standby") {
  Fixture f;
  const Decision end = f.OnFailure(absl::UnauthenticatedError("no token"));
  CHECK(end.action == Decision::kEnd);
  CHECK(absl::IsUnauthenticated(end.end));
}

}  // namespace
}  // namespace lockstep::chief
