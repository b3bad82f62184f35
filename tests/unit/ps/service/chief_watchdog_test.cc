#include "ps/service/chief_watchdog.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::ps {
namespace {

TEST_CASE("A ps says after 10 s whom it waits for, again every 5 s, and gives up in time") {
  const absl::Duration start = absl::Seconds(1000);
  ChiefWatchdog wait("host:1", start, absl::Seconds(22));
  std::vector<int64_t> said;
  absl::Duration now = start;
  while (wait.Check(now).ok()) {
    if (const auto message = wait.Message(now)) {
      said.push_back(absl::ToInt64Seconds(now - start));
      CHECK(message->is_warning);
      CHECK(message->text == "waiting for the chief (host:1) to call, for " +
                                 std::to_string(said.back()) +
                                 " s; giving up after 22 s (--start_timeout)");
    }
    now += absl::Seconds(1);
  }
  CHECK(said == std::vector<int64_t>{10, 15, 20});
  CHECK(now - start == absl::Seconds(22));
  const absl::Status status = wait.Check(now);
  CHECK(absl::IsUnavailable(status));
  CHECK(std::string(status.message()).find("host:1") != std::string::npos);
}

TEST_CASE("a ps that the chief asks says that the chief waits for another, and does not give up") {
  ChiefWatchdog wait("host:1", absl::ZeroDuration(), absl::Seconds(20));
  std::vector<int64_t> said;
  for (int second = 0; second < 100; ++second) {
    const absl::Duration now = absl::Seconds(second);
    if (second >= 6 && second % 3 == 0) wait.Asked(now);
    CHECK(wait.Check(now).ok());
    const auto message = wait.Message(now);
    if (!message) continue;
    said.push_back(second);
    CHECK_FALSE(message->is_warning);
    CHECK(message->text ==
          "the chief (host:1) is up and waits for another ps; ./lockstep status host:1 names it");
  }
  CHECK(said == std::vector<int64_t>{10, 40, 70});
  // The last time was at 99 s.
  CHECK_FALSE(wait.Message(absl::Seconds(99.5)));
  const auto gone = wait.Message(absl::Seconds(112));
  REQUIRE(gone);
  CHECK(gone->is_warning);
  CHECK(gone->text ==
        "waiting for the chief (host:1) to call again, for 13 s; giving up after 20 s "
        "(--start_timeout)");
  CHECK(wait.Check(absl::Seconds(118.9)).ok());
  CHECK(absl::IsUnavailable(wait.Check(absl::Seconds(119))));
}

}  // namespace
}  // namespace lockstep::ps
