// A network that does its worst: requests arrive twice, messages come after the deadline of their
// call, and one direction between two processes is cut.
#include "tests/sim/network.h"

#include <catch2/catch.hpp>
#include <optional>

namespace lockstep::sim {
namespace {

class NetworkTest {
 public:
  using Answer = absl::StatusOr<int>;
  static constexpr Link kLink{{Role::kWorker, 0}, {Role::kPs, 0}};

  explicit NetworkTest(const NetworkOptions& options) : network(options, &events, &random) {}
  // `serve` counts how often the request has arrived.
  void Call(absl::Duration deadline) {
    network.Call<int>(
        kLink, deadline, [this](Callback<int> answer) { answer(++arrived); },
        [this](const Answer& reply) {
          answer = reply;
          answered_after = events.Monotonic();
        });
    events.RunUntil([] { return false; }, absl::Minutes(2));
  }

  EventQueue events;
  Random random{1};
  Network network;
  int arrived = 0;
  std::optional<Answer> answer;
  absl::Duration answered_after;
};

TEST_CASE("a request arrives twice, its caller has one answer") {
  NetworkTest test({.duplicates = 1});
  test.Call(absl::Seconds(60));
  CHECK(test.arrived == 2);
  CHECK(test.answer->ok());
  CHECK(test.events.trace().faults().Of(Fault::kDuplicateRequest) == 1);
}

TEST_CASE("a message that takes longer than its deadline arrives all the same") {
  NetworkTest test({.stalls = 1});
  test.Call(absl::Seconds(5));
  CHECK(test.arrived == 1);
  CHECK(absl::IsDeadlineExceeded(test.answer->status()));
  CHECK(test.answered_after == absl::Seconds(5));
}

TEST_CASE("a call that is parked for longer than its deadline ends") {
  EventQueue events;
  Random random(1);
  Network network({}, &events, &random);
  Callback<int> parked;
  std::optional<absl::StatusOr<int>> answer;
  network.Call<int>(
      NetworkTest::kLink, absl::Seconds(60),
      [&parked](Callback<int> waits) { parked = std::move(waits); },
      [&answer](const absl::StatusOr<int>& reply) { answer = reply; });
  REQUIRE(events.RunUntil([&] { return answer.has_value(); }, absl::Minutes(2)));
  CHECK(events.Monotonic() == absl::Seconds(60));
  CHECK(absl::IsDeadlineExceeded(answer->status()));
  parked(7);
  events.RunUntil([] { return false; }, absl::Seconds(1));
  CHECK_FALSE(answer->ok());
}

TEST_CASE("a cut holds what goes in its direction until it is over") {
  NetworkTest there({});
  there.network.Cut(NetworkTest::kLink, absl::Seconds(10));
  there.Call(absl::Seconds(60));
  CHECK(there.answer->ok());
  CHECK(there.answered_after > absl::Seconds(10));
  NetworkTest back({});
  back.network.Cut(NetworkTest::kLink.Reversed(), absl::Seconds(10));
  back.Call(absl::Seconds(5));
  CHECK(back.arrived == 1);
  CHECK(absl::IsDeadlineExceeded(back.answer->status()));
}

TEST_CASE("a cut that outlasts a keepalive ends the call") {
  NetworkTest test({});
  test.network.Cut(NetworkTest::kLink, absl::Seconds(30));
  test.Call(absl::Seconds(60));
  CHECK(test.arrived == 0);
  CHECK(absl::IsUnavailable(test.answer->status()));
  CHECK(test.answered_after == kKeepalive);
}

}  // namespace
}  // namespace lockstep::sim
