#include "deploy/cli/watch_failure.h"

#include <catch2/catch.hpp>

namespace lockstep::deploy {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a watch goes on where the answer is late, or a connection was lost") {
  for (const bool is_repeated : {false, true}) {
    const auto late =
        ExplainWatchFailure("a:1", absl::DeadlineExceededError("no answer in 5s"), is_repeated);
    REQUIRE(late.ok());
    CHECK_FALSE(late->has_ended);
    CHECK(late->line == "no answer in 5s; asking again");
  }
  const auto lost = ExplainWatchFailure("a:1", absl::UnavailableError("keepalive"), false);
  REQUIRE(lost.ok());
  CHECK_FALSE(lost->has_ended);
}

TEST_CASE("a watch ends in order with its process, and says so") {
  for (const absl::Status& gone :
       {absl::UnavailableError("refused"), absl::CancelledError("gone")}) {
    const auto ended = ExplainWatchFailure("a:1", gone, /*is_repeated=*/true);
    REQUIRE(ended.ok());
    CHECK(ended->has_ended);
    CHECK_THAT(ended->line, Contains("a:1 has ended, or cannot be reached: ") &&
                                Contains(std::string(gone.message())));
  }
}

TEST_CASE("a watch ends with an error that waiting does not change") {
  const absl::Status refused = absl::UnauthenticatedError("another --token_file");
  CHECK(ExplainWatchFailure("a:1", refused, /*is_repeated=*/false).status() == refused);
}

}  // namespace
}  // namespace lockstep::deploy
