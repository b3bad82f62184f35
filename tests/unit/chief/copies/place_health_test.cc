#include "chief/copies/place_health.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

namespace lockstep::chief {
namespace {

TEST_CASE("a ps is lost when it refuses for a while, is silent for long, or comes back empty") {
  constexpr absl::Duration kPatience = absl::Seconds(2);
  PlaceHealth health;
  health.Answered(absl::Seconds(10));
  CHECK_FALSE(health.WhyLost(absl::Seconds(11.9), kPatience, false).has_value());
  CHECK(
      absl::StrContains(*health.WhyLost(absl::Seconds(12), kPatience, false), "has not answered"));

  health.Answered(absl::Seconds(12));
  health.Failed(absl::UnavailableError("refused"), absl::Seconds(12.1));
  health.Failed(absl::UnavailableError("refused"), absl::Seconds(12.3));
  CHECK_FALSE(health.WhyLost(absl::Seconds(12.3), kPatience, false).has_value());
  CHECK(health.WhyLost(absl::Seconds(12.4), kPatience, false) == "refused");
  // A newer question is under way, and is slow.
  CHECK_FALSE(health.WhyLost(absl::Seconds(12.5), kPatience, true).has_value());
  CHECK(health.WhyLost(absl::Seconds(14), kPatience, true).has_value());
  health.Answered(absl::Seconds(12.5));
  CHECK_FALSE(health.WhyLost(absl::Seconds(12.6), kPatience, false).has_value());

  // A call that was too late says nothing yet.
  health.Failed(absl::DeadlineExceededError("late"), absl::Seconds(12.6));
  CHECK_FALSE(health.WhyLost(absl::Seconds(13.5), kPatience, false).has_value());

  CHECK_FALSE(health.HasLostVariables());
  health.Lost(absl::UnavailableError("started again"));
  health.Answered(absl::Seconds(14));
  CHECK(health.WhyLost(absl::Seconds(14), kPatience, false) == "started again");
  CHECK(health.HasLostVariables());
}

}  // namespace
}  // namespace lockstep::chief
