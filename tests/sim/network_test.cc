// A network that does its worst: requests arrive twice, messages come after the deadline of their
// call, and one direction between two processes is cut.
#include "tests/sim/network.h"

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "common/log/log.h"
#include "tests/sim/sim_cluster.h"

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

TEST_CASE("calls to and from a process whose connections end fail at their callers") {
  EventQueue events;
  Random random(1);
  Network network({}, &events, &random);
  const Node ps{Role::kPs, 0};
  std::vector<absl::Status> ended;
  const auto call = [&](const Link& link) {
    network.Call<int>(
        link, absl::Seconds(60), [](const Callback<int>&) {},
        [&ended](const absl::StatusOr<int>& reply) { ended.push_back(reply.status()); });
  };
  call({{Role::kWorker, 0}, ps});
  call({ps, {Role::kPs, 1}});
  call({{Role::kWorker, 0}, {Role::kPs, 1}});
  events.RunUntil([] { return false; }, absl::Seconds(1));
  network.CloseConnections(ps);
  events.RunUntil([] { return false; }, absl::Seconds(1));
  REQUIRE(ended.size() == 2);
  CHECK(absl::IsUnavailable(ended[0]));
  CHECK(absl::IsUnavailable(ended[1]));
}

// As of a real process: its kernel keeps connections, and the keepalives of others end them.
TEST_CASE("a ps or a chief that is stopped for longer than a keepalive loses its connections") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 1, .steps = 1});
  const bool is_ps = GENERATE(true, false);
  const absl::Duration pause = GENERATE(absl::Seconds(14), absl::Seconds(19));
  cluster.StartChief();
  const Node stopped = is_ps ? Node{Role::kPs, 0} : Node{Role::kChief, 0};
  std::optional<absl::Status> end;
  cluster.network().Call<int>(
      {{Role::kWorker, 9}, stopped}, absl::Seconds(60), [](const Callback<int>&) {},
      [&end](const absl::StatusOr<int>& reply) { end = reply.status(); });
  is_ps ? cluster.ps(0).Suspend(pause) : cluster.chief().Suspend(pause);
  cluster.RunUntil([&] { return end.has_value(); }, absl::Seconds(20));
  REQUIRE(end.has_value() == (pause > kKeepalive));
  if (!end.has_value()) return;
  CHECK(absl::IsUnavailable(*end));
  CHECK(cluster.events().Monotonic() >= kKeepalive);
  CHECK(cluster.events().Monotonic() < kKeepalive + absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep::sim
