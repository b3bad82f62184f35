// Workers and a ps of one host that exchange memory, over the real client and server.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/client/ps_control.h"
#include "common/client/ps_transport.h"
#include "common/client/shard_session.h"
#include "ps/service/ps_server.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/support/session_calls.h"
#include "tests/support/thread_timer.h"

namespace lockstep::ps {
namespace {

// A ps that shares memory, and the first worker's client of it.
class SharingPs {
 public:
  explicit SharingPs(bool shares = true) {
    auto server = PsServer::Start(
        &shard_, {.address = "127.0.0.1:0",
                  .memory = shares ? &registry_ : nullptr,
                  .identity = {.clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                               .incarnation = Incarnation(3)}});
    REQUIRE(server.ok());
    server_ = *std::move(server);
    control_ = MakePsControl(client());
    REQUIRE(CallAndWait(*control_, kSetView, TwoWorkers()).ok());
    CreateVariablesRequest variables = Variables({kElements, 3});
    variables.set_total_num_replicas(1);
    variables.set_replicas_to_aggregate(1);
    REQUIRE(CallAndWait(*control_, kCreateVariables, variables).ok());
    auto memory = GradientMemory::Create(Tensor::RoomFor(kElements * 4) + Tensor::RoomFor(12));
    REQUIRE(memory.ok());
    memory_ = *std::move(memory);
    transport_ = MakePsTransport(
        client(), memory_.get(),
        [this](absl::Status status) {
          told_ = std::move(status);
          has_told_.Notify();
        },
        [this](std::shared_ptr<const shm::Segment> values) {
          adopted_ += values->bytes().size();
          return values;
        });
  }
  ClientOptions client() const {
    return {.address = absl::StrCat("127.0.0.1:", server_->port()), .name = "ps 0"};
  }
  PsControl* control() { return control_.get(); }
  TensorTransport* transport() { return transport_.get(); }
  GradientMemory* memory() { return memory_.get(); }
  SharedMemoryRegistry* registry() { return &registry_; }
  // After the first call.
  absl::Status Told() {
    has_told_.WaitForNotification();
    return told_;
  }

  // Bytes of the ps's memory that were shown before they were used.
  uint64_t adopted() const { return adopted_; }

  static constexpr int64_t kElements = 5 << 20;  // more than a message takes

 private:
  SharedMemoryRegistry registry_;
  Shard shard_{ShardOptions{
      .make_value_memory = [this](uint64_t bytes) { return registry_.MakeValues(bytes); }}};
  std::unique_ptr<PsServer> server_;
  std::unique_ptr<PsControl> control_;
  std::unique_ptr<GradientMemory> memory_;
  absl::Status told_;
  absl::Notification has_told_;
  std::atomic<uint64_t> adopted_ = 0;
  std::unique_ptr<TensorTransport> transport_;
};

// Pulls and pushes as a worker does.
class Replica {
 public:
  Replica(SharingPs* ps, bool in_place) : ps_(ps) {
    std::vector<FetchTarget> targets;
    for (uint32_t i = 0; i < 2; ++i) {
      const Shape shape({i == 0 ? SharingPs::kElements : 3});
      gradients_.push_back(ps->memory()->Take(DType::kFloat32, shape));
      values_.push_back(Tensor::Zeros(DType::kFloat32, shape));
      targets.push_back({VariableId(i), values_.back().view(), {}, in_place});
    }
    SessionOptions options;
    options.identity = Worker(0);
    session_ = std::make_unique<ShardSession>(options, ps->transport(), &timer_);
    session_->SetTargets(std::move(targets));
  }
  void Fetch(int64_t version) {
    const auto got = FetchValues(session_.get(), version);
    REQUIRE(got.ok());
    CHECK(*got == GlobalStep(version));
  }
  // The last element of the large variable.
  float Last() const {
    return static_cast<const float*>(session_->Value(0))[SharingPs::kElements - 1];
  }
  bool IsInPlace() const { return session_->Value(0) != values_[0].data(); }
  void Step(int64_t step, float gradient) {
    GrantRequest grant = Granted(step);
    grant.set_required(1);
    Answer<GrantReply> closed;
    ps_->control()->Call(kGrant, grant, closed.done());
    session_->BeginGradient(PushSeq(static_cast<uint64_t>(step) + 1), GlobalStep(step), 2);
    for (uint32_t i : {1, 0}) {
      std::ranges::fill(gradients_[i].as<float>(), gradient);
      session_->Add({VariableId(i), gradients_[i].shape(), gradients_[i].view()});
    }
    const auto pushed = EndGradient(session_.get());
    REQUIRE(pushed.ok());
    CHECK(pushed->accepted == 2);
    REQUIRE(closed.Wait().ok());
  }

 private:
  SharingPs* ps_;
  std::vector<Tensor> gradients_, values_;
  ThreadTimer timer_;
  std::unique_ptr<ShardSession> session_;
};

TEST_CASE("Steps in shared memory, copied and in place, are those in messages") {
  for (const bool in_place : {false, true}) {
    SharingPs ps;
    Replica replica(&ps, in_place);
    replica.Fetch(0);
    REQUIRE(ps.Told().ok());
    CHECK(ps.adopted() > SharingPs::kElements * sizeof(float));
    for (int64_t step = 0; step < 4; ++step) {
      replica.Step(step, 2);
      replica.Fetch(step + 1);
      CHECK(replica.IsInPlace() == in_place);
      CHECK(replica.Last() == 1 - 2 * kLearningRate * static_cast<float>(step + 1));
    }
  }
}

TEST_CASE(
    "A ps that has forgotten the worker's memory is sent bytes, and asked to exchange it again") {
  SharingPs ps;
  Replica replica(&ps, true);
  replica.Fetch(0);
  REQUIRE(ps.Told().ok());
  ps.registry()->KeepOnly({});
  replica.Step(0, 2);
  CHECK(replica.Last() == 1);
  replica.Fetch(1);
  CHECK(replica.Last() == 1 - 2 * kLearningRate);
  // The exchange goes on beside the calls.
  int64_t version = 1;
  for (; !replica.IsInPlace(); ++version) {
    replica.Step(version, 2);
    replica.Fetch(version + 1);
  }
  CHECK(replica.Last() == 1 - 2 * kLearningRate * static_cast<float>(version));
}

TEST_CASE("A ps that exchanges no memory says so, and tensors travel in messages") {
  SharingPs ps(/*shares=*/false);
  Replica replica(&ps, true);
  replica.Fetch(0);
  CHECK(absl::StrContains(ps.Told().message(), "exchanges no memory"));
  CHECK(ps.adopted() == 0);
  replica.Step(0, 2);
  replica.Fetch(1);
  CHECK_FALSE(replica.IsInPlace());
  CHECK(replica.Last() == 1 - 2 * kLearningRate);
}

}  // namespace
}  // namespace lockstep::ps
