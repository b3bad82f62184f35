// Messages that name elements in the sender's memory.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/shm/host.h"
#include "tests/unit/worker/peer/peers_for_tests.h"
#include "worker/peer/grpc_member_connection.h"
#include "worker/peer/member_memory.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kLength = 8;  // two segments of 4

std::shared_ptr<shm::Segment> NewSegment() {
  return shm::Segment::Create("lockstep-test", 4096).value();
}

// A reducer at position 0 that sends to a receiver at position 1. It never gets a result.
struct OneSender {
  explicit OneSender(bool shared_memory, std::shared_ptr<const shm::Segment> receivers_own,
                     absl::Status first_answer = absl::OkStatus())
      : receiver(std::make_shared<AnsweringReceiver>(workers.GroupOf(2, 1, 1),
                                                     std::move(receivers_own))) {
    receiver->AnswerNext(std::move(first_answer));
    CHECK(workers.service(1)->Attach(receiver).ok());
    auto options = workers.OptionsFor(workers.GroupOf(2, 1, 0), ReductionOver(2, kLength));
    options.shared_memory = shared_memory;
    reducer = PeerGroupReducer::Create(options, workers.service(0)).value();
    reducing.emplace(reducer.get(), kLength);
  }
  ~OneSender() {
    reducer.reset();
    CHECK(absl::IsCancelled(reducing->Wait()));
  }

  // Waits for so many messages. Each takes a call or two; the probe paces the wait.
  std::vector<SendRequest> Await(size_t messages) {
    Stranger stranger(workers, 0);
    while (receiver->requests().size() < messages) {
      CHECK(stranger.Probe(workers.GroupOf(2, 1, 1)).ok());
    }
    return receiver->requests();
  }

  test::PeerWorkers workers{2};
  std::shared_ptr<AnsweringReceiver> receiver;
  std::unique_ptr<PeerGroupReducer> reducer;
  std::optional<Reducing> reducing;
};

TEST_CASE("on one host a message has no payload, and its place shows the sender's elements") {
  OneSender sender(true, NewSegment());
  const SendRequest request = sender.Await(1)[0];
  CHECK(request.in_memory());
  CHECK(request.size() == kLength / 2 * sizeof(float));
  CHECK(sender.receiver->payload_bytes() == 0);
  const auto elements = sender.receiver->memory().Find(0, request.place(), request.size());
  REQUIRE(elements.ok());
  for (int i = 0; i < kLength / 2; ++i) {
    CHECK(reinterpret_cast<const float*>(elements->bytes.data())[i] == 1);
  }
}

TEST_CASE("without shared memory here, or there, messages carry their elements") {
  for (const bool here : {false, true}) {
    OneSender sender(here, here ? nullptr : NewSegment());
    CHECK(!sender.Await(1)[0].in_memory());
    CHECK(sender.receiver->payload_bytes() == kLength / 2 * sizeof(float));
  }
}

TEST_CASE("a receiver that has lost the memory gets it again") {
  OneSender sender(true, NewSegment(), absl::NotFoundError("the sender has attached no memory"));
  const std::vector<SendRequest> requests = sender.Await(2);
  CHECK(requests[0].in_memory());
  CHECK(requests[1].in_memory());
  CHECK(requests[1].place() == requests[0].place());
  CHECK(sender.receiver->memory().Find(0, requests[1].place(), requests[1].size()).ok());
}

TEST_CASE("a place that is not in the sender's memory is refused") {
  test::PeerWorkers workers(2);
  auto options = workers.OptionsFor(workers.GroupOf(2, 1, 1), ReductionOver(2, kLength));
  options.shared_memory = true;
  const auto reducer = PeerGroupReducer::Create(options, workers.service(1)).value();
  const Group group = workers.GroupOf(2, 1, 0);
  GrpcMemberConnection connection({.address = workers.address(1), .name = "worker 1"},
                                  IdentityOf(group), NewSegment(), nullptr);
  Stranger stranger(workers, 1);
  SendRequest request = Stranger::RingMessage(group, kLength, 0);
  request.set_in_memory(true);
  request.set_size(16);
  // Before anything is attached.
  CHECK(absl::IsNotFound(stranger.SendAndWait(request, {})));
  const Tensor elsewhere = Tensor::Zeros(DType::kFloat32, Shape({4}));
  absl::Notification sent;
  // Of elements outside the memory: they travel as bytes once it is attached.
  connection.Send(Stranger::RingMessage(group, kLength, 1), BytesOf(elsewhere),
                  [&](absl::Status) { sent.Notify(); });
  for (const auto& [place, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {4096, 16}, {4081, 16}, {UINT64_MAX, 16}, {UINT64_MAX - 7, 16}, {0, UINT64_MAX}}) {
    request.set_place(place);
    request.set_size(size);
    absl::Status status;
    while (absl::IsNotFound(status = stranger.SendAndWait(request, {}))) {
    }
    INFO(place << ", " << size << ": " << status);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), "expected a place in the sender's 4096 bytes"));
  }
  connection.Cancel();
  sent.WaitForNotification();
}

TEST_CASE("a member on another host is told why there is no shared memory") {
  MemberMemory memory(NewSegment(), 2);
  CHECK(memory.Offer(0, "another boot").reason() == "the workers are not on one host");
  CHECK(MemberMemory(nullptr, 2).Offer(0, shm::BootId().value()).reason() ==
        "the other worker shares no memory");
  CHECK(!memory.Offer(0, shm::BootId().value()).socket().empty());
}

}  // namespace
}  // namespace lockstep::worker
