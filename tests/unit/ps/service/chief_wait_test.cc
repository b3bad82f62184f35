#include "ps/service/chief_wait.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::ps {
namespace {

TEST_CASE("A ps says after 10 s whom it waits for, again every 5 s, and gives up in time") {
  const absl::Duration start = absl::Seconds(1000);
  ChiefWait wait("host:1", start, absl::Seconds(22));
  std::vector<int64_t> said;
  absl::Duration now = start;
  while (wait.Check(now).ok()) {
    if (const auto message = wait.Message(now)) {
      said.push_back(absl::ToInt64Seconds(now - start));
      CHECK(*message == "waiting for the chief (host:1) to call, for " +
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

}  // namespace
}  // namespace lockstep::ps
