#include "common/rpc/name_wait.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"

namespace lockstep::rpc {
namespace {

// A name service that knows the name from `known_at` on, asked by a process that waits 10 s.
struct NameService {
  explicit NameService(absl::Duration known_at) : known_at(known_at) {}

  NameWait Wait() {
    return {.patience = absl::Seconds(10),
            .clock = &clock,
            .resolve = [this](const std::string&) -> absl::StatusOr<std::vector<SocketAddress>> {
              if (clock.Monotonic() < known_at) return absl::UnavailableError("host ps-0 unknown");
              return std::vector<SocketAddress>(1);
            },
            .pause =
                [this](absl::Duration duration) {
                  clock.Advance(duration);
                  return clock.Monotonic() < stopped_at;
                }};
  }

  ManualClock clock;
  const absl::Duration known_at;
  absl::Duration stopped_at = absl::InfiniteDuration();
};

TEST_CASE("A name that resolves later is waited for") {
  NameService names(absl::Seconds(7));
  const auto resolved = WaitForName("ps-0:2222", names.Wait());
  REQUIRE(resolved.ok());
  CHECK(resolved->size() == 1);
  CHECK(names.clock.Monotonic() < absl::Seconds(8));
}

TEST_CASE("A name that does not resolve in time ends a process with 138") {
  NameService names(absl::Seconds(11));
  const absl::Status status = WaitForName("ps-0:2222", names.Wait()).status();
  CHECK(ExitCodeFor(status) == ExitCode::kPeersLost);
  CHECK(absl::StrContains(status.message(), "host ps-0 unknown"));
  CHECK(absl::StrContains(status.message(), "--start_timeout"));
}

TEST_CASE("A process that is told to stop waits for no name") {
  NameService names(absl::Seconds(7));
  names.stopped_at = absl::Seconds(1);
  CHECK(absl::IsCancelled(WaitForName("ps-0:2222", names.Wait()).status()));
  CHECK(names.clock.Monotonic() == absl::Seconds(1));
}

TEST_CASE("A pause ends at once when the process is told to stop") {
  MonotonicNotification stop;
  CHECK(PauseUnless(&stop, absl::ZeroDuration()));
  CHECK(PauseUnless(nullptr, absl::Milliseconds(1)));
  stop.Notify();
  CHECK_FALSE(PauseUnless(&stop, absl::Hours(1)));
}

}  // namespace
}  // namespace lockstep::rpc
