#include "worker/service/chief_outage.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

constexpr absl::Duration kStart = absl::Seconds(100);

TEST_CASE("a chief that is away is named every five seconds, and its return once") {
  ChiefOutage outage;
  std::vector<std::string> lines;
  for (int second = 1; second <= 12; ++second) {
    const auto line = outage.OnFailure("connection refused", absl::Seconds(second),
                                       kStart + absl::Seconds(second));
    if (line.has_value()) lines.push_back(*line);
  }
  CHECK(lines ==
        std::vector<std::string>{"no contact with the chief for 5 s: connection refused",
                                 "no contact with the chief for 10 s: connection refused"});
  CHECK(outage.OnContact(kStart + absl::Seconds(13)) == "the chief is back after 13 s");
  CHECK_FALSE(outage.OnContact(kStart + absl::Seconds(14)).has_value());
}

TEST_CASE("an outage that nobody was told of is over without a word, and the next is told anew") {
  ChiefOutage outage;
  CHECK_FALSE(outage.OnFailure("reset", absl::Seconds(2), kStart).has_value());
  CHECK_FALSE(outage.OnContact(kStart).has_value());
  CHECK(outage.OnFailure("reset", absl::Seconds(5), kStart + absl::Seconds(9)).has_value());
  CHECK(outage.OnContact(kStart + absl::Seconds(10)).has_value());
  CHECK(outage.OnFailure("reset", absl::Seconds(5), kStart + absl::Seconds(11)).has_value());
}

}  // namespace
}  // namespace lockstep::worker
