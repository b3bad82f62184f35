#include "common/client/failover_transport.h"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/lost_variables.h"
#include "common/transport/ps_methods.h"
#include "tests/support/bytes_transport.h"

namespace lockstep {
namespace {

// Calls wait until the test answers them, Open only if it says so.
class HeldTransport final : public test::BytesTransport {
 public:
  void Open(const WorkerIdentity& worker, Callback<TransportInfo> done) override {
    opened_by.push_back(worker.worker());
    if (holds_opens) {
      opens.push_back(std::move(done));
    } else {
      done(open_answer);
    }
  }
  bool MayRound() const override { return may_round; }
  void Cancel() override { is_cancelled = true; }
  void Start(const CallOptions&, google::protobuf::Message*, const std::vector<OutgoingTensor>&,
             google::protobuf::Message*, Callback<ReceivedTensors> done) override {
    calls.push_back(std::move(done));
  }
  void Answer(absl::StatusOr<ReceivedTensors> answer) {
    Callback<ReceivedTensors> call = std::move(calls.front());
    calls.erase(calls.begin());
    call(std::move(answer));
  }

  std::vector<Callback<ReceivedTensors>> calls;
  std::vector<uint32_t> opened_by;
  std::vector<Callback<TransportInfo>> opens;  // that wait
  bool holds_opens = false;
  absl::StatusOr<TransportInfo> open_answer = TransportInfo();
  std::shared_ptr<int> life = std::make_shared<int>();  // ends with the transport
  bool may_round = true;
  bool is_cancelled = false;
};

// At "home", with a copy at "host".
struct Shard {
  explicit Shard(const std::string& other = "host")
      : transport(
            [this](const std::string& address) {
              auto made = std::make_unique<HeldTransport>();
              peers[address] = made.get();
              ++connections;
              return made;
            },
            "home", other) {}

  // The status that the call ends with, once it has.
  std::shared_ptr<std::optional<absl::Status>> Pull() {
    auto end = std::make_shared<std::optional<absl::Status>>();
    transport.Call(
        kPull, PullRequest(), {}, /*accepts_references=*/false,
        [end](const absl::StatusOr<TensorReply<PullReply>>& reply) { *end = reply.status(); });
    return end;
  }

  std::map<std::string, HeldTransport*> peers;  // the last one made, by address
  int connections = 0;
  FailoverTransport transport;
};

TEST_CASE("who wants to know is told of each move, for as long as it wants to") {
  Shard shard;
  int moves = 0;
  auto on_move = std::make_shared<const std::function<void()>>([&moves] { ++moves; });
  shard.transport.NotifyOfMoves(on_move);
  shard.transport.SetPlaces("host", "home");
  CHECK(moves == 1);
  shard.transport.SetPlaces("host", "");
  CHECK(moves == 1);
  shard.transport.SetPlaces("host", "home");
  const auto pull = shard.Pull();
  shard.peers["host"]->Answer(absl::UnavailableError("gone"));
  CHECK(moves == 2);
  on_move.reset();
  shard.transport.SetPlaces("elsewhere", "");
  CHECK(moves == 2);
}

TEST_CASE(
    "a worker that has shared memory with one ps of a shard is not rounded by the other one") {
  Shard shard;
  CHECK(shard.transport.MayRound());
  shard.peers["home"]->may_round = false;
  SECTION("a failed call moves it") {
    const auto lost = shard.Pull();
    shard.peers["home"]->Answer(absl::UnavailableError("away"));
  }
  SECTION("the chief moves it, and the lost ps is forgotten") {
    shard.transport.SetPlaces("host", "");
    shard.transport.SetPlaces("host", "home");
  }
  REQUIRE(shard.peers.contains("host"));
  CHECK_FALSE(shard.transport.MayRound());
}

TEST_CASE("calls go to the ps that serves while it answers") {
  Shard shard;
  const auto pull = shard.Pull();
  shard.peers["home"]->Answer(ReceivedTensors());
  CHECK((*pull)->ok());
  const auto refused = shard.Pull();
  shard.peers["home"]->Answer(absl::InvalidArgumentError("no"));
  CHECK(absl::IsInvalidArgument(**refused));
  CHECK(shard.connections == 1);
  CHECK(shard.transport.generation() == 0);
}

TEST_CASE("a call that a peer cannot serve sends the next ones to the other, and back") {
  Shard shard;
  WorkerIdentity worker;
  worker.set_worker(3);
  shard.transport.Open(worker, [](const absl::StatusOr<TransportInfo>&) {});
  for (const absl::Status& failure :
       {absl::UnavailableError("away"), LostVariablesError("ps 0"), NoVariablesError("none")}) {
    const uint64_t generation = shard.transport.generation();
    const auto lost = shard.Pull();
    shard.peers["home"]->Answer(failure);
    CHECK(absl::IsUnavailable(**lost));
    CHECK(shard.transport.generation() == generation + 1);
    REQUIRE(shard.peers.contains("host"));
    CHECK(shard.peers["host"]->opened_by.back() == 3);
    const auto copys = shard.Pull();
    shard.peers["host"]->Answer(absl::UnavailableError("keeps a copy"));
    CHECK(absl::IsUnavailable(**copys));
    CHECK(shard.transport.generation() == generation + 2);
  }
  const auto served = shard.Pull();
  shard.peers["home"]->Answer(ReceivedTensors());
  CHECK((*served)->ok());
  CHECK(shard.connections == 2);
}

TEST_CASE("a peer that could not be opened is opened again with the next call, until it answers") {
  Shard shard;
  shard.transport.Open(WorkerIdentity(), [](const absl::StatusOr<TransportInfo>&) {});
  const auto move_from = [&shard](const std::string& address) {
    const auto lost = shard.Pull();
    shard.peers[address]->Answer(absl::UnavailableError("away"));
  };
  move_from("home");
  move_from("host");
  HeldTransport* const host = shard.peers["host"];
  host->open_answer = absl::UnavailableError("keeps a copy");
  move_from("home");
  const size_t opened = host->opened_by.size();
  const auto first = shard.Pull();
  CHECK(host->opened_by.size() == opened + 1);
  host->open_answer = TransportInfo();
  const auto second = shard.Pull();
  CHECK(host->opened_by.size() == opened + 2);
  const auto third = shard.Pull();
  CHECK(host->opened_by.size() == opened + 2);
}

TEST_CASE("a peer that has been left stays until its Open has ended") {
  Shard shard;
  HeldTransport* const home = shard.peers["home"];
  const std::weak_ptr<int> life = home->life;
  home->holds_opens = true;
  bool is_told = false;
  shard.transport.Open(WorkerIdentity(),
                       [&](const absl::StatusOr<TransportInfo>&) { is_told = true; });
  shard.transport.SetPlaces("host", "");
  shard.transport.SetPlaces("host", "elsewhere");
  REQUIRE_FALSE(life.expired());
  home->opens.front()(absl::CancelledError("cancelled"));
  CHECK(is_told);
  shard.transport.SetPlaces("host", "");
  CHECK(life.expired());
}

TEST_CASE("calls that were under way together move once, and what the left peer said is void") {
  Shard shard;
  const auto first = shard.Pull();
  const auto second = shard.Pull();
  const auto third = shard.Pull();
  shard.peers["home"]->Answer(absl::UnavailableError("away"));
  shard.peers["home"]->Answer(absl::UnavailableError("away"));
  shard.peers["home"]->Answer(ReceivedTensors());
  CHECK(shard.transport.generation() == 1);
  CHECK(absl::IsUnavailable(**third));
}

TEST_CASE("when the chief says so, calls go to another ps, and those in flight end") {
  Shard shard;
  const auto parked = shard.Pull();
  HeldTransport* const home = shard.peers["home"];
  shard.transport.SetPlaces("host", "");
  CHECK(home->is_cancelled);
  home->Answer(absl::CancelledError("cancelled"));
  CHECK(absl::IsUnavailable(**parked));
  REQUIRE(shard.peers.contains("host"));
  // There is no other one.
  for (const absl::Status& failure : {absl::UnavailableError("busy"), NoVariablesError("none")}) {
    const auto failed = shard.Pull();
    shard.peers["host"]->Answer(failure);
    CHECK(absl::IsUnavailable(**failed));
  }
  const auto served = shard.Pull();
  shard.peers["host"]->Answer(ReceivedTensors());
  CHECK((*served)->ok());
  shard.transport.SetPlaces("host", "");
  CHECK(shard.transport.generation() == 1);
}

TEST_CASE("a new copy is found when the ps that serves is lost, and home again, by a new call") {
  Shard shard;
  shard.transport.SetPlaces("host", "");
  shard.transport.SetPlaces("host", "home");
  CHECK(shard.transport.generation() == 1);
  HeldTransport* const host = shard.peers["host"];
  const auto lost = shard.Pull();
  host->Answer(absl::UnavailableError("away"));
  CHECK(absl::IsUnavailable(**lost));
  // The connection to the home of before has been cancelled.
  CHECK(shard.connections == 3);
  const auto served = shard.Pull();
  shard.peers["home"]->Answer(ReceivedTensors());
  CHECK((*served)->ok());
  // The chief says what the worker has found.
  shard.transport.SetPlaces("home", "");
  CHECK(shard.transport.generation() == 2);
  CHECK(host->is_cancelled);
  // The host has been started again, at another port.
  shard.transport.SetPlaces("home", "host2");
  const auto again = shard.Pull();
  shard.peers["home"]->Answer(absl::UnavailableError("away"));
  CHECK(absl::IsUnavailable(**again));
  const auto last = shard.Pull();
  REQUIRE(shard.peers.contains("host2"));
  shard.peers["host2"]->Answer(ReceivedTensors());
  CHECK((*last)->ok());
}

TEST_CASE("what is cancelled stays so") {
  Shard shard;
  shard.transport.Cancel();
  const auto pull = shard.Pull();
  shard.peers["home"]->Answer(absl::CancelledError("cancelled"));
  CHECK(absl::IsCancelled(**pull));
}

}  // namespace
}  // namespace lockstep
