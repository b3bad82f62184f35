#include "common/security/refusal_pace.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace lockstep::security {
namespace {

constexpr absl::Duration kInterval = RefusalPace::kInterval;
constexpr absl::Duration kStart = absl::Hours(1);
constexpr absl::Duration kNotHeld = absl::ZeroDuration();

// As many refusals at once as are not held.
void Spend(RefusalPace& pace, absl::string_view caller, absl::Duration now) {
  for (int i = 0; i < RefusalPace::kAtOnce; ++i) REQUIRE(pace.Hold(caller, 0, now) == kNotHeld);
}

TEST_CASE("some refusals are answered at once, then one each interval") {
  RefusalPace pace;
  Spend(pace, "worker/1", kStart);
  for (int i = 1; i <= 10; ++i) CHECK(pace.Hold("worker/1", 0, kStart) == i * kInterval);
}

TEST_CASE("a caller who waits for each answer is refused once an interval") {
  RefusalPace pace;
  absl::Duration now = kStart;
  Spend(pace, "worker/1", now);
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration hold = pace.Hold("worker/1", 0, now);
    REQUIRE(hold == kInterval);
    now += hold;
  }
}

TEST_CASE("a caller who is not refused for a while is answered at once again") {
  RefusalPace pace;
  Spend(pace, "worker/1", kStart);
  const absl::Duration later = kStart + 3 * kInterval;
  for (int i = 0; i < 3; ++i) CHECK(pace.Hold("worker/1", 0, later) == kNotHeld);
  CHECK(pace.Hold("worker/1", 0, later) == kInterval);
  const absl::Duration much_later = later + absl::Minutes(5);
  Spend(pace, "worker/1", much_later);
  CHECK(pace.Hold("worker/1", 0, much_later) == kInterval);
}

TEST_CASE("no caller waits for another one's refusals") {
  RefusalPace pace;
  Spend(pace, "worker/1", kStart);
  CHECK(pace.Hold("worker/1", 0, kStart) == kInterval);
  CHECK(pace.Hold("worker/2", 0, kStart) == kNotHeld);
  CHECK(pace.Hold("ipv4:127.0.0.1", 0, kStart) == kNotHeld);
}

TEST_CASE("a large message counts as several") {
  RefusalPace pace;
  Spend(pace, "worker/1", kStart);
  CHECK(pace.Hold("worker/1", 9 * RefusalPace::kBytesOfRefusal, kStart) == 10 * kInterval);
  CHECK(pace.Hold("worker/1", RefusalPace::kBytesOfRefusal - 1, kStart) == 11 * kInterval);
}

TEST_CASE("no answer is held beyond a limit, nor is a caller in debt for longer") {
  RefusalPace pace;
  for (int i = 0; i < 10'000; ++i)
    CHECK(pace.Hold("a", ~uint64_t{0}, kStart) <= RefusalPace::kMaxHold);
  CHECK(pace.Hold("a", 0, kStart) == RefusalPace::kMaxHold);
  const absl::Duration later = kStart + RefusalPace::kMaxHold;
  CHECK(pace.Hold("a", 0, later) == kInterval);
}

TEST_CASE("callers beyond a limit share a budget until others are forgotten") {
  RefusalPace pace;
  for (size_t i = 0; i < RefusalPace::kMaxCallers; ++i) {
    REQUIRE(pace.Hold(absl::StrCat("host ", i), 0, kStart) == kNotHeld);
  }
  for (int i = 0; i < RefusalPace::kAtOnce; ++i) {
    REQUIRE(pace.Hold(absl::StrCat("other ", i), 0, kStart) == kNotHeld);
  }
  CHECK(pace.Hold("yet another", 0, kStart) == kInterval);
  CHECK(pace.Hold("host 0", 0, kStart) == kNotHeld);
  CHECK(pace.num_callers() == RefusalPace::kMaxCallers);

  const absl::Duration later = kStart + 2 * kInterval;  // host 0 has been refused twice
  CHECK(pace.Hold("yet another", 0, later) == kNotHeld);
  CHECK(pace.num_callers() == 1);
}

TEST_CASE("codes that a job at work meets are no refusals") {
  for (int code = 0; code <= 16; ++code) {
    CAPTURE(code);
    const auto status = static_cast<absl::StatusCode>(code);
    const bool is_refusal = status == absl::StatusCode::kInvalidArgument ||
                            status == absl::StatusCode::kPermissionDenied ||
                            status == absl::StatusCode::kUnauthenticated ||
                            status == absl::StatusCode::kUnimplemented;
    CHECK(IsRefusal(status) == is_refusal);
  }
}

}  // namespace
}  // namespace lockstep::security
