#include "worker/strategy/parameter_server/persistent_call.h"

#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <utility>

namespace lockstep::worker {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(6);

// A call whose answers are scripted: each comes after some time of the clock.
struct Script {
  struct Answer {
    absl::Duration after;
    absl::StatusOr<int> result;
  };

  absl::StatusOr<int> Call() {
    return CallPersistently<int>(
        [this](Done<int> done) {
          REQUIRE_FALSE(answers.empty());
          clock.Advance(answers.front().after);
          const absl::StatusOr<int> result = answers.front().result;
          answers.pop_front();
          done(result);
        },
        kPatience, &clock, &stop);
  }

  std::deque<Answer> answers;
  ManualClock clock;
  MonotonicNotification stop;
};

TEST_CASE("a call that was parked for long survives a cut connection") {
  Script script;
  script.answers = {{absl::Seconds(60), absl::DeadlineExceededError("parked")},
                    {absl::Seconds(40), absl::UnavailableError("connection reset")},
                    {absl::Seconds(1), absl::UnavailableError("connection refused")},
                    {absl::Seconds(50), 7}};
  const absl::StatusOr<int> answer = script.Call();
  REQUIRE(answer.ok());
  CHECK(*answer == 7);
}

TEST_CASE("a ps that refuses for want of room is asked again") {
  Script script;
  script.answers = {{absl::Seconds(1), absl::ResourceExhaustedError("no room now")},
                    {absl::Seconds(1), 7}};
  CHECK(script.Call().ok());
}

TEST_CASE("a ps that stays away is given up after the patience, which the error names") {
  Script script;
  for (int i = 0; i < 7; ++i) {
    script.answers.push_back({absl::Seconds(1), absl::UnavailableError("ps 0 (h:1) is away")});
  }
  const absl::Status status = script.Call().status();
  CHECK(absl::IsUnavailable(status));
  CHECK(status.message() == "ps 0 (h:1) is away (tried for 6s)");
  CHECK(script.answers.empty());
}

TEST_CASE("another error is final, and so is a stop") {
  Script script;
  script.answers = {{absl::ZeroDuration(), absl::AbortedError("fenced")}};
  CHECK(absl::IsAborted(script.Call().status()));
  script.answers = {{absl::ZeroDuration(), absl::UnavailableError("away")}};
  script.stop.Notify();
  CHECK(absl::IsCancelled(script.Call().status()));
}

TEST_CASE(
    "connections that are cut again and again, long after each other, are no ps that is away") {
  Script script;
  for (int i = 0; i < 5; ++i) {
    script.answers.push_back({absl::Seconds(9), absl::UnavailableError("connection reset")});
  }
  script.answers.push_back({absl::Seconds(9), 7});
  CHECK(script.Call().ok());
}

}  // namespace
}  // namespace lockstep::worker
