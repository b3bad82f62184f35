#include "chief/sync/shard_calls.h"

#include <catch2/catch.hpp>
#include <optional>

#include "chief/sync/milestones.h"
#include "chief/sync/rate.h"

namespace lockstep::chief {
namespace {

struct Fixture {
  Fixture() { calls.Start(); }

  void Answer(size_t shard, absl::Status status) {
    auto answered = std::move(*open[shard]);
    open[shard].reset();
    answered(std::move(status));
  }
  void Pass(absl::Duration time) {
    clock.Advance(time);
    calls.Tick();
  }

  ManualClock clock;
  std::vector<std::optional<StatusCallback>> open{2};
  std::optional<absl::Status> ended;
  ShardCalls calls{
      {"ps 0 (a:1)", "ps 1 (b:2)"},
      &clock,
      [this](size_t shard, StatusCallback answered) { open[shard] = std::move(answered); },
      [this](absl::Status status) { ended = std::move(status); }};
};

TEST_CASE("the calls end when every shard has answered") {
  Fixture f;
  CHECK(f.calls.DescribeWaiting() ==
        "ps 0 (a:1) has not answered yet; ps 1 (b:2) has not answered yet");
  f.Answer(1, absl::OkStatus());
  CHECK_FALSE(f.ended.has_value());
  CHECK(f.calls.DescribeWaiting() == "ps 0 (a:1) has not answered yet");
  f.Answer(0, absl::OkStatus());
  CHECK(f.ended->ok());
  CHECK(f.calls.DescribeWaiting().empty());
}

TEST_CASE("a shard that cannot be reached is asked again after a pause, the others are not") {
  Fixture f;
  f.Answer(1, absl::OkStatus());
  f.Answer(0, absl::UnavailableError("ps 0 (a:1) is not available: refused"));
  CHECK(f.calls.DescribeWaiting() == "ps 0 (a:1) is not available: refused");
  f.Pass(absl::Milliseconds(99));
  CHECK_FALSE(f.open[0].has_value());
  f.Pass(absl::Milliseconds(1));
  REQUIRE(f.open[0].has_value());
  CHECK_FALSE(f.open[1].has_value());
  f.Answer(0, absl::OkStatus());
  CHECK(f.ended->ok());
}

TEST_CASE("a shard that waits for the end of its pause can be asked at once") {
  Fixture f;
  f.Answer(0, absl::UnavailableError("ps 0 (a:1) is not available: refused"));
  REQUIRE_FALSE(f.open[0].has_value());
  f.calls.RepeatNow();
  REQUIRE(f.open[0].has_value());
  f.Answer(0, absl::OkStatus());
  f.calls.RepeatNow();
  CHECK_FALSE(f.open[0].has_value());
  CHECK_FALSE(f.ended.has_value());
  f.Answer(1, absl::OkStatus());
  CHECK(f.ended->ok());
}

TEST_CASE("an error that repeating does not repair ends all") {
  Fixture f;
  f.Answer(0, absl::FailedPreconditionError("ps 0 (a:1): another cluster"));
  REQUIRE(f.ended.has_value());
  CHECK(f.ended->code() == absl::StatusCode::kFailedPrecondition);
  f.ended.reset();
  f.Answer(1, absl::InternalError("late"));
  f.Pass(absl::Hours(1));
  CHECK_FALSE(f.ended.has_value());
  CHECK_FALSE(f.open[0].has_value());
}

TEST_CASE("milestones come every so many steps and at the end") {
  const Milestones both{.every_steps = 3, .at_end = true, .end = GlobalStep(7)};
  std::vector<int64_t> due;
  for (int64_t step = 1; step <= 7; ++step) {
    if (both.IsDue(GlobalStep(step))) due.push_back(step);
  }
  CHECK(due == std::vector<int64_t>{3, 6, 7});
  CHECK_FALSE(Milestones{.end = GlobalStep(7)}.IsDue(GlobalStep(7)));
  CHECK_FALSE(Milestones{.every_steps = 7, .end = GlobalStep(7)}.IsDue(GlobalStep(7)));
}

TEST_CASE("the rate is that of the last seconds and falls when no step comes") {
  Rate rate;
  CHECK(rate.StepsPerSecond(absl::Seconds(1)) == 0);
  for (int i = 0; i <= 100; ++i) rate.Add(GlobalStep(i), absl::Seconds(i));
  CHECK(rate.StepsPerSecond(absl::Seconds(100)) == Approx(1));
  for (int i = 1; i <= 100; ++i) rate.Add(GlobalStep(100 + i), absl::Seconds(100 + 0.1 * i));
  CHECK(rate.StepsPerSecond(absl::Seconds(110)) == Approx(10));
  CHECK(rate.StepsPerSecond(absl::Seconds(115)) == Approx(5));
}

}  // namespace
}  // namespace lockstep::chief
