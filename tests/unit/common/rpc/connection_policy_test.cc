#include "common/rpc/connection_policy.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep::rpc {
namespace {

constexpr Shortage kFull = {.descriptors = true};

using Connections = std::vector<ConnectionCounters>;

std::vector<std::string> Peers(const std::vector<ClosedConnection>& closed) {
  std::vector<std::string> peers;
  for (const ClosedConnection& each : closed) peers.push_back(each.peer);
  return peers;
}

TEST_CASE("A connection with many unfinished calls is closed the second time it is seen") {
  ConnectionPolicy policy;
  const Connections connections = {{.peer = "a", .id = 1, .started = 1000},
                                   {.peer = "b", .id = 2, .started = 8}};
  CHECK(policy.Judge(connections, {}, absl::Seconds(1)).empty());
  CHECK(Peers(policy.Judge(connections, {}, absl::Milliseconds(1250))) ==
        std::vector<std::string>{"a"});
}

TEST_CASE("Parked calls are finished ones, however many and old they are") {
  ConnectionPolicy policy;
  const Connections connections = {
      {.peer = "a", .started = 20'000, .succeeded = 10'000, .messages = 20'000}};
  for (int second = 0; second < 1000; second += 5)
    CHECK(policy.Judge(connections, kFull, absl::Seconds(second)).empty());
}

TEST_CASE("Calls that were cancelled before their message had come are not counted") {
  ConnectionPolicy policy;
  ConnectionCounters worker = {.peer = "a"};
  // Each of 200 calls ends so, with 3 parked ones beside it that are issued again every minute.
  for (int call = 0; call < 200; ++call) {
    worker.succeeded = call / 30;
    worker.started = call + 4 + worker.succeeded;
    worker.messages = 3 + worker.succeeded;
    worker.failed = call;
    CHECK(policy.Judge({worker}, {}, absl::Seconds(2 * call)).empty());
    worker.failed = call + 1;
    CHECK(policy.Judge({worker}, {}, absl::Seconds(2 * call + 1)).empty());
  }
}

TEST_CASE("Calls that were cancelled long ago are not taken for parked ones that came later") {
  ConnectionPolicy policy;
  ConnectionCounters worker = {.peer = "a", .started = 200, .failed = 200};
  CHECK(policy.Judge({worker}, {}, absl::Seconds(1)).empty());
  worker.started += 100;
  worker.messages += 100;
  CHECK(policy.Judge({worker}, {}, absl::Seconds(2)).empty());
  CHECK(policy.Judge({worker}, {}, absl::Seconds(3)).empty());
}

TEST_CASE("Calls of a connection that has ended hide none of the next one from the same port") {
  ConnectionPolicy policy;
  const ConnectionCounters before = {.peer = "a", .id = 1, .started = 1000, .failed = 1000};
  const ConnectionCounters after = {.peer = "a", .id = 2, .started = 1000};
  CHECK(policy.Judge({before}, {}, absl::Seconds(0)).empty());
  CHECK(policy.Judge({after}, {}, absl::Seconds(5)).empty());
  const auto closed = policy.Judge({after}, {}, absl::Seconds(6));
  REQUIRE(closed.size() == 1);
  CHECK(closed[0].peer == "a");
  CHECK(closed[0].reason == "1000 unfinished calls");
}

TEST_CASE("Many messages of one call hide no calls without a message") {
  ConnectionPolicy policy;
  const ConnectionCounters streams = {
      .peer = "a", .id = 1, .started = 1001, .messages = 5000, .extra = 4999};
  CHECK(policy.Judge({streams}, {}, absl::Seconds(0)).empty());
  const auto closed = policy.Judge({streams}, {}, absl::Seconds(5));
  REQUIRE(closed.size() == 1);
  CHECK(closed[0].reason == "1000 unfinished calls");
}

TEST_CASE("The ends of streams close no connection with a parked call") {
  ConnectionPolicy policy;
  // Three streams of one message, whose ends are counted as extra ones.
  const ConnectionCounters client = {
      .peer = "a", .id = 1, .started = 4, .succeeded = 3, .messages = 4, .extra = 3};
  for (int second = 0; second < 1000; second += 5)
    CHECK(policy.Judge({client}, {}, absl::Seconds(second)).empty());
}

TEST_CASE("A call that stays unfinished is closed after two minutes without a message") {
  ConnectionPolicy policy;
  ConnectionCounters slow = {.peer = "slow", .id = 1, .started = 2, .messages = 1};
  ConnectionCounters stuck = {.peer = "stuck", .id = 2, .started = 2, .messages = 1};
  for (int second = 0; second < 120; second += 10) {
    CHECK(policy.Judge({slow, stuck}, {}, absl::Seconds(second)).empty());
    ++slow.started;
    ++slow.messages;
  }
  CHECK(Peers(policy.Judge({slow, stuck}, {}, absl::Seconds(120))) ==
        std::vector<std::string>{"stuck"});
}

TEST_CASE("Of too many unfinished calls in all, those go that have stalled longest") {
  ConnectionPolicy policy;
  Connections workers;
  for (int i = 0; i < 300; ++i)
    workers.push_back({.peer = absl::StrCat("w", i), .id = 100 + i, .started = 1});
  Connections strangers;
  for (int i = 0; i < 20; ++i)
    strangers.push_back({.peer = absl::StrCat("s", i), .id = i, .started = 10});
  CHECK(policy.Judge(strangers, {}, absl::Seconds(0)).empty());
  Connections all = strangers;
  all.insert(all.end(), workers.begin(), workers.end());
  // 500 are too many, and the workers have only just come.
  const auto closed = Peers(policy.Judge(all, {}, absl::Seconds(1)));
  CHECK(closed.size() == 20);
  for (const std::string& peer : closed) CHECK(peer[0] == 's');
}

TEST_CASE("Of stalled connections only so many go that the rest are not too many") {
  ConnectionPolicy policy;
  Connections connections;
  const auto connect = [&](const std::string& name, int number) {
    for (int i = 0; i < number; ++i) {
      const auto id = static_cast<int64_t>(connections.size());
      connections.push_back({.peer = absl::StrCat(name, i), .id = id, .started = 10});
    }
  };
  connect("first", 20);
  CHECK(policy.Judge(connections, {}, absl::Seconds(0)).empty());
  connect("second", 5);
  CHECK(policy.Judge(connections, {}, absl::Seconds(1)).empty());
  connect("third", 2);
  // 270 calls, of which 256 may stay.
  const auto closed = Peers(policy.Judge(connections, {}, absl::Seconds(2)));
  CHECK(closed.size() == 2);
  for (const std::string& peer : closed) CHECK(absl::StartsWith(peer, "first"));
}

TEST_CASE("Idle connections go when others wait for a descriptor, and only then") {
  ConnectionPolicy policy;
  const Connections connections = {
      {.peer = "idle", .id = 1, .started = 3, .succeeded = 3, .messages = 3},
      {.peer = "parked", .id = 2, .started = 3, .succeeded = 2, .messages = 3}};
  CHECK(policy.Judge(connections, kFull, absl::Seconds(0)).empty());
  CHECK(policy.Judge(connections, kFull, absl::Seconds(9)).empty());
  CHECK(policy.Judge(connections, {}, absl::Seconds(10)).empty());
  CHECK(Peers(policy.Judge(connections, kFull, absl::Seconds(11))) ==
        std::vector<std::string>{"idle"});
}

TEST_CASE("A connection that has made no call for 2 seconds goes first") {
  ConnectionPolicy policy;
  const Connections connections = {{.peer = "silent"}};
  CHECK(policy.Judge(connections, kFull, absl::Seconds(0)).empty());
  CHECK(Peers(policy.Judge(connections, kFull, absl::Seconds(2))) ==
        std::vector<std::string>{"silent"});
}

TEST_CASE("While memory is short fewer unfinished calls may stay") {
  ConnectionPolicy policy;
  Connections connections;
  for (int i = 0; i < 20; ++i)
    connections.push_back({.peer = absl::StrCat(i), .id = i, .started = 10});
  CHECK(policy.Judge(connections, {}, absl::Seconds(0)).empty());
  CHECK_FALSE(policy.is_calm());
  CHECK(policy.Judge(connections, {}, absl::Seconds(1)).empty());
  CHECK(policy.Judge(connections, {.memory = true}, absl::Seconds(2)).size() == 14);
  CHECK(policy.is_calm());
}

TEST_CASE("How many unfinished calls may stay while memory is short follows from what there is") {
  ConnectionPolicy policy;
  policy.SetFewUnfinished(16);
  Connections connections;
  for (int i = 0; i < 6; ++i)
    connections.push_back({.peer = absl::StrCat(i), .id = i, .started = 10});
  CHECK(policy.Judge(connections, {}, absl::Seconds(0)).empty());
  CHECK_FALSE(policy.is_calm());
  CHECK(policy.Judge(connections, {.memory = true}, absl::Seconds(1)).size() == 5);
  CHECK(policy.is_calm());
}

}  // namespace
}  // namespace lockstep::rpc
