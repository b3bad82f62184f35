#include "common/client/failover_transport.h"

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/lost_variables.h"
#include "common/transport/ps_methods.h"

namespace lockstep {
namespace {

// Calls wait until the test answers them.
class HeldTransport final : public TensorTransport {
 public:
  void Open(const WorkerIdentity& worker, Callback<TransportInfo> done) override {
    opened_by.push_back(worker.worker());
    done(TransportInfo());
  }
  std::string peer() const override { return "held"; }
  bool MayRound() const override { return true; }
  bool SendsByReference(std::span<const std::byte>) const override { return false; }
  bool ReceivesByReference() const override { return false; }
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
  bool is_cancelled = false;
};

struct Shard {
  Shard()
      : transport([this](FailoverTransport::Peer peer) {
          auto made = std::make_unique<HeldTransport>();
          (peer == FailoverTransport::kPrimary ? primary : copy) = made.get();
          return made;
        }) {}

  // The status that the call ends with, once it has.
  std::shared_ptr<std::optional<absl::Status>> Pull() {
    auto end = std::make_shared<std::optional<absl::Status>>();
    transport.Call(
        kPull, PullRequest(), {}, /*accepts_references=*/false,
        [end](const absl::StatusOr<TensorReply<PullReply>>& reply) { *end = reply.status(); });
    return end;
  }

  HeldTransport* primary = nullptr;
  HeldTransport* copy = nullptr;
  FailoverTransport transport;
};

TEST_CASE("calls go to the primary while it answers") {
  Shard shard;
  const auto pull = shard.Pull();
  shard.primary->Answer(ReceivedTensors());
  CHECK((*pull)->ok());
  const auto refused = shard.Pull();
  shard.primary->Answer(absl::InvalidArgumentError("no"));
  CHECK(absl::IsInvalidArgument(**refused));
  CHECK(shard.copy == nullptr);
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
    shard.primary->Answer(failure);
    CHECK(absl::IsUnavailable(**lost));
    CHECK(shard.transport.generation() == generation + 1);
    REQUIRE(shard.copy != nullptr);
    CHECK(shard.copy->opened_by.back() == 3);
    const auto copys = shard.Pull();
    shard.copy->Answer(absl::UnavailableError("keeps a copy"));
    CHECK(absl::IsUnavailable(**copys));
    CHECK(shard.transport.generation() == generation + 2);
  }
  const auto served = shard.Pull();
  shard.primary->Answer(ReceivedTensors());
  CHECK((*served)->ok());
}

TEST_CASE("calls that were under way together move once, and what the left peer said is void") {
  Shard shard;
  const auto first = shard.Pull();
  const auto second = shard.Pull();
  const auto third = shard.Pull();
  shard.primary->Answer(absl::UnavailableError("away"));
  shard.primary->Answer(absl::UnavailableError("away"));
  shard.primary->Answer(ReceivedTensors());
  CHECK(shard.transport.generation() == 1);
  CHECK(absl::IsUnavailable(**third));
}

TEST_CASE("when the chief says so, calls stay at the copy") {
  Shard shard;
  const auto parked = shard.Pull();
  shard.transport.StayAtCopy();
  CHECK(shard.primary->is_cancelled);
  shard.primary->Answer(absl::CancelledError("cancelled"));
  CHECK(absl::IsUnavailable(**parked));
  REQUIRE(shard.copy != nullptr);
  const auto failed = shard.Pull();
  shard.copy->Answer(absl::UnavailableError("busy"));
  CHECK(absl::IsUnavailable(**failed));
  const auto served = shard.Pull();
  shard.copy->Answer(ReceivedTensors());
  CHECK((*served)->ok());
  shard.transport.StayAtCopy();
  CHECK(shard.transport.generation() == 1);
}

TEST_CASE("what is cancelled stays so") {
  Shard shard;
  shard.transport.Cancel();
  const auto pull = shard.Pull();
  shard.primary->Answer(absl::CancelledError("cancelled"));
  CHECK(absl::IsCancelled(**pull));
}

}  // namespace
}  // namespace lockstep
