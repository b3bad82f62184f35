#include "ps/service/shared_memory_registry.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/client/gradient_pusher.h"
#include "common/client/variable_puller.h"
#include "common/shm/fd_passing_client.h"
#include "common/shm/host.h"
#include "ps/service/ps_server.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"

namespace lockstep::ps {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

ps::WorkerIdentity Identity(uint32_t worker, uint64_t incarnation) {
  return {kJob, Epoch(1), WorkerIndex(worker), Incarnation(incarnation)};
}

// A worker's memory of 4096 bytes, exchanged with the desk.
std::shared_ptr<shm::Segment> Attach(SharedMemoryRegistry* desk, const ps::WorkerIdentity& worker) {
  const AttachMemoryReply offer = desk->Offer(worker, *shm::BootId());
  REQUIRE(offer.reason().empty());
  auto mine = shm::Segment::Create("test", 4096);
  REQUIRE(mine.ok());
  const auto values = shm::ShareMemory(offer.socket(), offer.secret(), mine->get(), kPatience);
  REQUIRE(values.ok());
  CHECK(*values != nullptr);
  return *mine;
}

absl::StatusOr<PushOrder> Locate(const SharedMemoryRegistry& desk, const ps::WorkerIdentity& worker,
                                 std::vector<std::pair<uint64_t, uint64_t>> places) {
  PushRequest request;
  for (const auto& [place, size] : places) {
    lockstep::PushPiece* const piece = request.add_pieces();
    piece->set_variable(7);
    piece->set_place(place);
    piece->set_size(size);
  }
  PushOrder order;
  order.worker = worker;
  const absl::Status status = desk.Locate(request, &order);
  if (!status.ok()) return status;
  return order;
}

TEST_CASE("A place in a worker's memory becomes the payload, and outside it nothing does") {
  SharedMemoryRegistry desk;
  REQUIRE(desk.MakeValues(100).has_value());
  const ps::WorkerIdentity worker = Identity(0, 100);
  const auto memory = Attach(&desk, worker);
  memory->bytes()[64] = std::byte{5};
  const auto order = Locate(desk, worker, {{64, 8}, {4096, 0}, {0, 4096}});
  REQUIRE(order.ok());
  REQUIRE(order->payload.size() == 3);
  CHECK(order->payload[0][0] == std::byte{5});
  CHECK(order->payload[1].empty());
  CHECK(order->memory != nullptr);
  for (const auto& [place, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {4096, 1}, {4097, 0}, {1, 4096}, {64, UINT64_MAX}, {UINT64_MAX, 1}, {UINT64_MAX, 2}}) {
    const absl::Status outside = Locate(desk, worker, {{0, 8}, {place, size}}).status();
    CHECK(absl::IsInvalidArgument(outside));
    CHECK(absl::StrContains(outside.message(), "variable 7"));
  }
}

TEST_CASE("Row indices come in the message, and the values of their slices lie in memory") {
  SharedMemoryRegistry desk;
  REQUIRE(desk.MakeValues(100).has_value());
  const ps::WorkerIdentity worker = Identity(0, 100);
  const auto memory = Attach(&desk, worker);
  const std::vector<std::byte> indices(40);
  // A dense piece of 8 bytes, then sparse ones: 3 and 2 rows of 4 bytes.
  struct Message {
    uint64_t offset = 0;
    int64_t rows = 3;
    uint64_t index_bytes = 40;
  };
  const auto locate = [&](const Message& message) -> absl::StatusOr<PushOrder> {
    PushRequest request;
    request.add_pieces()->set_size(8);
    lockstep::PushPiece* piece = request.add_pieces();
    piece->set_variable(7);
    piece->set_offset(message.offset);
    piece->set_size(36);
    piece->set_rows(message.rows);
    piece->set_place(64);
    piece = request.add_pieces();
    piece->set_variable(8);
    piece->set_size(24);
    piece->set_rows(2);
    piece->set_place(128);
    PushOrder order;
    order.worker = worker;
    // Cut within the first piece's indices.
    order.payload = {std::span(indices).first(10),
                     std::span(indices).subspan(10, message.index_bytes - 10)};
    LOCKSTEP_RETURN_IF_ERROR(desk.Locate(request, &order));
    return order;
  };
  const auto order = locate({});
  REQUIRE(order.ok());
  std::vector<size_t> sizes;
  for (const auto& span : order->payload) sizes.push_back(span.size());
  CHECK(sizes == std::vector<size_t>{8, 10, 14, 12, 16, 8});
  REQUIRE(order->in_place.size() == 3);
  CHECK(order->in_place[1].data() == order->payload[3].data());
  CHECK(order->in_place[2].size() == 8);
  for (const auto& [message, error] : std::vector<std::pair<Message, std::string>>{
           {{.offset = 8},
            "expected a whole sparse gradient in memory, got 36 bytes from offset 8"},
           {{.rows = 5}, "of one of 5 rows"},
           {{.rows = -1}, "of one of -1 rows"},
           {{.rows = INT64_MAX}, "rows"},
           {{.index_bytes = 39}, "variable 8: expected a payload with the indices of its 2 rows"},
           {{.rows = 2}, "beyond its row indices"}}) {
    CAPTURE(error);
    const absl::Status refused = locate(message).status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK(absl::StrContains(refused.message(), error));
  }
}

TEST_CASE("Memory belongs to one incarnation in one epoch, for as long as it is a member") {
  SharedMemoryRegistry desk;
  REQUIRE(desk.MakeValues(100).has_value());
  const ps::WorkerIdentity first = Identity(0, 100), successor = Identity(0, 200);
  CHECK(absl::IsNotFound(Locate(desk, first, {{0, 8}}).status()));
  CHECK_FALSE(desk.HasValues(first));
  Attach(&desk, first);
  CHECK(Locate(desk, first, {{0, 8}}).ok());
  CHECK(desk.HasValues(first));
  CHECK(absl::IsNotFound(Locate(desk, successor, {{0, 8}}).status()));
  ps::WorkerIdentity later = first;
  later.epoch = Epoch(2);
  CHECK_FALSE(desk.HasValues(later));
  const auto held = Locate(desk, first, {{0, 8}});
  Attach(&desk, successor);
  CHECK(absl::IsNotFound(Locate(desk, first, {{0, 8}}).status()));
  CHECK(held->payload[0][0] == std::byte{0});  // still there
  desk.KeepOnly({{WorkerIndex(0), Incarnation(200)}});
  CHECK(desk.HasValues(successor));
  desk.KeepOnly({{WorkerIndex(1), Incarnation(200)}});
  CHECK_FALSE(desk.HasValues(successor));
}

TEST_CASE("Memory is offered on the same host alone, and where there are values") {
  SharedMemoryRegistry desk;
  CHECK_FALSE(desk.Offer(Identity(0, 100), *shm::BootId()).reason().empty());
  REQUIRE(desk.MakeValues(100).has_value());
  const AttachMemoryReply elsewhere = desk.Offer(Identity(0, 100), "another machine");
  CHECK(elsewhere.socket().empty());
  CHECK(absl::StrContains(elsewhere.reason(), "host"));
  CHECK_FALSE(desk.MakeValues(uint64_t{1} << 50).has_value());
}

TEST_CASE("Values made anew are not those that a worker has") {
  SharedMemoryRegistry desk;
  REQUIRE(desk.MakeValues(100).has_value());
  const AttachMemoryReply offer = desk.Offer(Identity(0, 100), *shm::BootId());
  Attach(&desk, Identity(1, 101));
  REQUIRE(desk.MakeValues(200).has_value());
  CHECK_FALSE(desk.HasValues(Identity(1, 101)));
  CHECK_FALSE(shm::ShareMemory(offer.socket(), offer.secret(), nullptr, kPatience).ok());
}

// A ps that shares memory, and the first worker's client of it.
class SharingPs {
 public:
  explicit SharingPs(bool shares = true) {
    auto server = PsServer::Start(
        &shard_, {.address = "127.0.0.1:0",
                  .memory = shares ? &desk_ : nullptr,
                  .identity = {.cluster = kTestCluster, .incarnation = Incarnation(3)}});
    REQUIRE(server.ok());
    server_ = *std::move(server);
    control_ = MakePsControl(client());
    REQUIRE(Await<SetViewReply>([&](auto done) { control_->SetView(TwoWorkers(), done); }).ok());
    CreateVariablesRequest variables = Variables({kElements, 3});
    variables.set_total_num_replicas(1);
    variables.set_replicas_to_aggregate(1);
    REQUIRE(Await<CreateVariablesReply>([&](auto done) {
              control_->CreateVariables(variables, done);
            }).ok());
    auto memory = GradientMemory::Create(Tensor::RoomFor(kElements * 4) + Tensor::RoomFor(12));
    REQUIRE(memory.ok());
    memory_ = *std::move(memory);
    data_ = MakePsData(client(), {.gradients = memory_.get(), .told = [this](const auto& status) {
                                    told_ = status;
                                    has_told_.Notify();
                                  }});
  }
  ClientOptions client() const {
    return {.address = absl::StrCat("127.0.0.1:", server_->port()), .name = "ps 0"};
  }
  PsControl* control() { return control_.get(); }
  PsData* data() { return data_.get(); }
  GradientMemory* memory() { return memory_.get(); }
  SharedMemoryRegistry* desk() { return &desk_; }
  // After the first call.
  absl::Status Told() {
    has_told_.WaitForNotification();
    return told_;
  }

  static constexpr int64_t kElements = 5 << 20;  // more than a message takes

 private:
  SharedMemoryRegistry desk_;
  Shard shard_{ShardOptions{
      .make_value_memory = [this](uint64_t bytes) { return desk_.MakeValues(bytes); }}};
  std::unique_ptr<PsServer> server_;
  std::unique_ptr<PsControl> control_;
  std::unique_ptr<GradientMemory> memory_;
  absl::Status told_;
  absl::Notification has_told_;
  std::unique_ptr<PsData> data_;
};

// Pulls and pushes as a worker does.
class Replica {
 public:
  Replica(SharingPs* ps, bool in_place) : ps_(ps) {
    std::vector<PullTarget> targets;
    for (uint32_t i = 0; i < 2; ++i) {
      const Shape shape({i == 0 ? SharingPs::kElements : 3});
      gradients_.push_back(ps->memory()->Take(DType::kFloat32, shape));
      values_.push_back(Tensor::Zeros(DType::kFloat32, shape));
      targets.push_back({VariableId(i), values_.back().view(), {}, in_place});
    }
    PullerOptions pull;
    pull.identity = Worker(0);
    puller_ = std::make_unique<VariablePuller>(ps->data(), pull, targets);
    PusherOptions push;
    push.identity = Worker(0);
    pusher_ = std::make_unique<GradientPusher>(ps->data(), push);
  }
  void Fetch(int64_t version) {
    const auto got =
        Await<GlobalStep>([&](auto done) { puller_->Fetch(GlobalStep(version), done); });
    REQUIRE(got.ok());
    CHECK(*got == GlobalStep(version));
  }
  // The last element of the large variable.
  float Last() const {
    return static_cast<const float*>(puller_->Value(0))[SharingPs::kElements - 1];
  }
  bool IsInPlace() const { return puller_->Value(0) != values_[0].data(); }
  void Step(int64_t step, float gradient) {
    GrantRequest grant = Granted(step);
    grant.set_required(1);
    Answer<GrantReply> closed;
    ps_->control()->Grant(grant, closed.done());
    const auto pushed = Await<PushSummary>([&](auto done) {
      pusher_->Start(PushSeq(static_cast<uint64_t>(step) + 1), GlobalStep(step), 2, done);
      for (uint32_t i : {1, 0}) {
        std::ranges::fill(gradients_[i].as<float>(), gradient);
        pusher_->Add(VariableId(i), gradients_[i].view());
      }
    });
    REQUIRE(pushed.ok());
    CHECK(pushed->accepted == 2);
    REQUIRE(closed.Wait().ok());
  }

 private:
  SharingPs* ps_;
  std::vector<Tensor> gradients_, values_;
  std::unique_ptr<VariablePuller> puller_;
  std::unique_ptr<GradientPusher> pusher_;
};

TEST_CASE("Steps in shared memory, copied and in place, are those in messages") {
  for (const bool in_place : {false, true}) {
    SharingPs ps;
    Replica replica(&ps, in_place);
    replica.Fetch(0);
    REQUIRE(ps.Told().ok());
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
  ps.desk()->KeepOnly({});
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
  replica.Step(0, 2);
  replica.Fetch(1);
  CHECK_FALSE(replica.IsInPlace());
  CHECK(replica.Last() == 1 - 2 * kLearningRate);
}

}  // namespace
}  // namespace lockstep::ps
