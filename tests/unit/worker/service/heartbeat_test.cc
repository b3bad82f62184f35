#include "worker/service/heartbeat.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "tests/support/log_lines.h"
#include "tests/unit/worker/service/fake_chief.h"

namespace lockstep::worker {
namespace {

// A heartbeat with its end caught.
struct Fixture {
  FakeChief chief;
  Progress progress;
  absl::Mutex mutex;
  std::vector<EvaluationResult> results;
  absl::Status ended;
  absl::Notification end;

  Heartbeat::Callbacks Callbacks() {
    return {.results =
                [this] {
                  absl::MutexLock lock(&mutex);
                  return results;
                },
            .failed_view =
                [] {
                  return GroupViewId{3, 5, 7};
                },
            .reply = [](const HeartbeatReply&) {},
            .chief_name = [] { return "the chief"; },
            .end =
                [this](absl::Status status) {
                  ended = status;
                  end.Notify();
                }};
  }
};

TEST_CASE("a heartbeat tells what the worker does, and the next one follows the answer") {
  Fixture f;
  f.progress.StartStep(GlobalStep(5));
  f.progress.Computed(32, 0.5, 1.0f);
  f.progress.WaitFor("a token");
  Heartbeat heartbeat({.job_id = 9, .worker = 2, .incarnation = 77}, &f.chief, {&f.progress, 1},
                      f.Callbacks());
  const HeartbeatRequest first = f.chief.NextHeartbeat();
  CHECK(first.job_id() == 9);
  CHECK(first.worker() == 2);
  CHECK(first.incarnation() == 77);
  CHECK(first.local_step() == 5);
  CHECK(first.examples() == 32);
  CHECK(first.waiting_for() == "a token");
  CHECK(first.failed_term() == 3);
  CHECK(first.failed_epoch() == 5);
  CHECK(first.failed_view() == 7);
  f.chief.Answer(HeartbeatReply());
  f.progress.StartStep(GlobalStep(6));
  f.chief.NextHeartbeat();
  HeartbeatReply finish;
  finish.set_finish(true);
  f.chief.Answer(finish);
  f.end.WaitForNotification();
  CHECK(f.ended.ok());
}

TEST_CASE("a heartbeat names the last reply that the process has got") {
  Fixture f;
  Heartbeat heartbeat({.last_reply = ReplyIdOf(5, 2)}, &f.chief, {&f.progress, 1}, f.Callbacks());
  CHECK(f.chief.NextHeartbeat().last_reply().number() == 2);
  HeartbeatReply reply;
  *reply.mutable_id() = ReplyIdOf(5, 4);
  f.chief.Answer(reply);
  CHECK(f.chief.NextHeartbeat().last_reply().number() == 4);
  // The reply to an earlier call comes later.
  *reply.mutable_id() = ReplyIdOf(5, 3);
  f.chief.Answer(reply);
  CHECK(f.chief.NextHeartbeat().last_reply().number() == 4);
  // Of another chief.
  *reply.mutable_id() = ReplyIdOf(6, 1);
  f.chief.Answer(reply);
  CHECK(f.chief.NextHeartbeat().last_reply().run() == 6);
  reply.set_finish(true);
  f.chief.Answer(reply);
  f.end.WaitForNotification();
  CHECK(f.ended.ok());
}

TEST_CASE("a reply that comes after a newer one changes nothing but the end") {
  Fixture f;
  std::vector<uint64_t> leases;  // of each reply; 0: none
  Heartbeat::Callbacks callbacks = f.Callbacks();
  callbacks.reply = [&](const HeartbeatReply& reply) {
    absl::MutexLock lock(&f.mutex);
    leases.push_back(reply.leases().empty() ? 0 : reply.leases(0).id());
  };
  Heartbeat heartbeat({.last_reply = ReplyIdOf(5, 2)}, &f.chief, {&f.progress, 1},
                      std::move(callbacks));
  f.chief.NextHeartbeat();
  heartbeat.SendNow();
  f.chief.NextHeartbeat();
  HeartbeatReply newer;
  *newer.mutable_id() = ReplyIdOf(5, 4);
  newer.add_leases()->set_id(9);
  f.chief.AnswerSecond(newer);
  // The chief had sent it before it granted the lease.
  HeartbeatReply older;
  *older.mutable_id() = ReplyIdOf(5, 3);
  std::vector<uint64_t> told = {9};
  SECTION("that leaves the job as it is") {
    f.chief.Answer(older);
    // Another one, of another run, and one without an id.
    HeartbeatReply other;
    *other.mutable_id() = ReplyIdOf(6, 1);
    other.add_leases()->set_id(10);
    f.chief.Answer(other);
    HeartbeatReply last;
    last.add_leases()->set_id(11);
    last.set_finish(true);
    f.chief.Answer(last);
    told = {9, 10, 11};
  }
  SECTION("that tells the end") {
    older.set_finish(true);
    f.chief.Answer(older);
  }
  f.end.WaitForNotification();
  CHECK(f.ended.ok());
  absl::MutexLock lock(&f.mutex);
  CHECK(leases == told);
}

TEST_CASE("the last call names the reply that told the end") {
  Fixture f;
  HeartbeatReply end;
  *end.mutable_id() = ReplyIdOf(5, 4);
  SECTION("of a job that is done") { end.set_finish(true); }
  SECTION("of one that has failed") { end.set_fail("ps 1 is gone"); }
  {
    Heartbeat heartbeat({.last_reply = ReplyIdOf(5, 3)}, &f.chief, {&f.progress, 1}, f.Callbacks());
    f.chief.Answer(end);
  }
  REQUIRE(f.chief.after_end().size() == 1);
  CHECK(f.chief.after_end()[0].last_reply().number() == 4);
  CHECK_FALSE(f.chief.after_end()[0].leaving());
}

TEST_CASE("who gives the chief up, or is refused, makes no last call") {
  Fixture f;
  absl::Status failure;
  SECTION("given up") { failure = absl::UnavailableError("connection refused"); }
  SECTION("refused") { failure = absl::AbortedError("another incarnation is registered"); }
  {
    Heartbeat heartbeat({.patience = absl::ZeroDuration()}, &f.chief, {&f.progress, 1},
                        f.Callbacks());
    f.chief.NextHeartbeat();
    f.chief.Answer(failure);
    f.end.WaitForNotification();
  }
  CHECK_FALSE(f.chief.HasHeartbeat());
}

TEST_CASE("a chief that is gone after it has told the end has told it all the same") {
  Fixture f;
  {
    Heartbeat heartbeat({.patience = absl::ZeroDuration()}, &f.chief, {&f.progress, 1},
                        f.Callbacks());
    f.chief.NextHeartbeat();
    heartbeat.SendNow();
    f.chief.NextHeartbeat();
    HeartbeatReply finish;
    finish.set_finish(true);
    f.chief.Answer(finish);
    f.chief.Answer(absl::UnavailableError("connection refused"));
    f.end.WaitForNotification();
  }
  CHECK(f.ended.ok());
  CHECK(f.chief.after_end().size() == 1);
}

TEST_CASE("a result is sent at once, beside the parked call") {
  Fixture f;
  Heartbeat heartbeat({}, &f.chief, {&f.progress, 1}, f.Callbacks());
  CHECK(f.chief.NextHeartbeat().results_size() == 0);
  {
    absl::MutexLock lock(&f.mutex);
    f.results.emplace_back().set_lease(3);
  }
  heartbeat.SendNow();
  const HeartbeatRequest with_result = f.chief.NextHeartbeat();
  REQUIRE(with_result.results_size() == 1);
  CHECK(with_result.results(0).lease() == 3);
  HeartbeatReply finish;
  finish.set_finish(true);
  f.chief.Answer(finish);
  f.chief.Answer(finish);
  f.end.WaitForNotification();
}

TEST_CASE("a failed job ends the worker with the job's exit code") {
  Fixture f;
  Heartbeat heartbeat({}, &f.chief, {&f.progress, 1}, f.Callbacks());
  HeartbeatReply fail;
  fail.set_fail("worker 0: labels.idx: corrupt");
  fail.set_fail_exit_code(65);
  f.chief.Answer(fail);
  f.end.WaitForNotification();
  CHECK(ExitCodeFor(f.ended) == ExitCode::kCorruptInput);
  CHECK(f.ended.message() == "the job was given up: worker 0: labels.idx: corrupt");
}

TEST_CASE("a fenced worker ends with the chief's word") {
  Fixture f;
  Heartbeat heartbeat({}, &f.chief, {&f.progress, 1}, f.Callbacks());
  f.chief.Answer(absl::AbortedError("a newer incarnation of worker 0 registered"));
  f.end.WaitForNotification();
  CHECK(ExitCodeFor(f.ended) == ExitCode::kFenced);
}

TEST_CASE("a chief that is away for longer than the patience is given up") {
  Fixture f;
  Heartbeat heartbeat({.patience = absl::ZeroDuration()}, &f.chief, {&f.progress, 1},
                      f.Callbacks());
  f.chief.Answer(absl::UnavailableError("connection refused"));
  f.end.WaitForNotification();
  CHECK(ExitCodeFor(f.ended) == ExitCode::kPeersLost);
}

TEST_CASE("a chief that has no room for the call now is asked again") {
  Fixture f;
  Heartbeat heartbeat({}, &f.chief, {&f.progress, 1}, f.Callbacks());
  f.chief.NextHeartbeat();
  f.chief.Answer(absl::ResourceExhaustedError("too many calls"));
  f.chief.NextHeartbeat();
  CHECK_FALSE(f.end.HasBeenNotified());
  HeartbeatReply finish;
  finish.set_finish(true);
  f.chief.Answer(finish);
  f.end.WaitForNotification();
  CHECK(f.ended.ok());
}

TEST_CASE("a failed job whose exit code is none ends the worker with that of a bug, not with 0") {
  for (const int code : {0, -1, 256}) {
    Fixture f;
    Heartbeat heartbeat({}, &f.chief, {&f.progress, 1}, f.Callbacks());
    HeartbeatReply fail;
    fail.set_fail("worker 0: no idea");
    fail.set_fail_exit_code(code);
    f.chief.Answer(fail);
    f.end.WaitForNotification();
    CHECK(ExitCodeFor(f.ended) == ExitCode::kBug);
  }
}

TEST_CASE("a worker that leaves says so beside its parked call, and nothing after that") {
  Fixture f;
  f.progress.StartStep(GlobalStep(5));
  Heartbeat heartbeat({.job_id = 9, .worker = 2, .incarnation = 77}, &f.chief, {&f.progress, 1},
                      f.Callbacks());
  CHECK_FALSE(f.chief.NextHeartbeat().leaving());
  std::thread leaver([&] { heartbeat.Leave(absl::InfiniteDuration()); });
  const HeartbeatRequest goodbye = f.chief.NextHeartbeat();
  CHECK(goodbye.leaving());
  CHECK(goodbye.job_id() == 9);
  CHECK(goodbye.worker() == 2);
  CHECK(goodbye.incarnation() == 77);
  f.chief.Answer(HeartbeatReply());  // the parked call
  f.chief.Answer(HeartbeatReply());
  leaver.join();
}

TEST_CASE("a chief that does not answer a goodbye holds nobody up for longer than the limit") {
  Fixture f;
  Heartbeat heartbeat({}, &f.chief, {&f.progress, 1}, f.Callbacks());
  f.chief.NextHeartbeat();
  heartbeat.Leave(absl::Milliseconds(1));
  CHECK(f.chief.NextHeartbeat().leaving());
  f.chief.Answer(HeartbeatReply());
  f.chief.Answer(absl::UnavailableError("gone"));
}

// A ps may tell it first that the chief has taken its membership away.
TEST_CASE("who gives its place up while the chief is silent says so, and that it is back") {
  // The lease ends before the place is given up, or while the parked call is waited for.
  const absl::Duration lease = GENERATE(absl::Milliseconds(1), absl::Milliseconds(300));
  CAPTURE(lease);
  Fixture f;
  int looks = 0;
  Heartbeat::Callbacks callbacks = f.Callbacks();
  callbacks.chief_name = [&] {
    absl::MutexLock lock(&f.mutex);
    ++looks;
    return "the chief";
  };
  bool has_looked = false;
  const std::vector<std::string> lines = test::LogLines([&] {
    auto heartbeat = std::make_unique<Heartbeat>(HeartbeatOptions{.lease = lease}, &f.chief,
                                                 std::span(&f.progress, 1), std::move(callbacks));
    f.chief.NextHeartbeat();
    const absl::Duration begin = Clock::Real()->Monotonic();
    while (Clock::Real()->Monotonic() - begin < absl::Milliseconds(2)) std::this_thread::yield();
    std::thread ender([&] { heartbeat.reset(); });
    {
      // Before each of two waits of the thread that calls, and of two for the answer.
      absl::MutexLock lock(&f.mutex);
      const auto is_late = [&] { return looks >= 4; };
      has_looked = f.mutex.AwaitWithTimeout(absl::Condition(&is_late), absl::Seconds(20));
    }
    f.chief.Answer(HeartbeatReply());
    ender.join();
  });
  CHECK(has_looked);
  const auto count = [&](absl::string_view text) {
    return std::ranges::count_if(
        lines, [&](const std::string& line) { return absl::StrContains(line, text); });
  };
  CHECK(count("no contact with the chief for 0 s: it does not answer") == 1);
  CHECK(count("contact with the chief again, after ") == 1);
}

TEST_CASE("who has heard of the job's end says no goodbye") {
  Fixture f;
  Heartbeat heartbeat({}, &f.chief, {&f.progress, 1}, f.Callbacks());
  HeartbeatReply finish;
  finish.set_finish(true);
  f.chief.Answer(finish);
  f.end.WaitForNotification();
  heartbeat.Leave(absl::InfiniteDuration());  // returns although the chief answers nothing
  CHECK(f.ended.ok());
}

}  // namespace
}  // namespace lockstep::worker
