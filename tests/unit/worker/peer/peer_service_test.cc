// What a peer service answers to members, to workers of other views, and to strangers.
#include "worker/peer/peer_service.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/transport/grpc/raw_channel.h"
#include "tests/unit/worker/peer/peers_for_tests.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kLength = 8;  // two segments of 4

struct TwoWorkers {
  std::unique_ptr<PeerGroupReducer> MakeReducer(int position, uint64_t view) {
    auto options =
        workers.OptionsFor(workers.GroupOf(2, view, position), ReductionOver(2, kLength));
    return PeerGroupReducer::Create(options, workers.service(position)).value();
  }

  test::PeerWorkers workers{2};
  Stranger stranger{workers, 1};
  Tensor segment = Tensor::Zeros(DType::kFloat32, Shape({4}));
};

TEST_CASE("a worker without a collective asks members to repeat") {
  TwoWorkers two;
  const Group group = two.workers.GroupOf(2, 1, 0);
  const absl::Status status =
      two.stranger.SendAndWait(Stranger::RingMessage(group, kLength, 0), BytesOf(two.segment));
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(absl::StrContains(status.message(), "takes no part in term 1, epoch 1, view 1 yet"));
  CHECK(absl::IsFailedPrecondition(two.stranger.Probe(group).status()));
}

TEST_CASE("an older view is answered ABORTED with the newer one, a newer view is asked to repeat") {
  TwoWorkers two;
  const auto reducer = two.MakeReducer(1, 5);
  const auto answer = [&](uint64_t view) {
    const Group group = two.workers.GroupOf(2, view, 0);
    return two.stranger.SendAndWait(Stranger::RingMessage(group, kLength, 0), BytesOf(two.segment));
  };
  CHECK(answer(4) ==
        absl::AbortedError(absl::StrCat("worker 1 (", two.workers.address(1),
                                        "): term 1, epoch 1, view 4 is over: the newer one is term "
                                        "1, epoch 1, view 5")));
  CHECK(absl::IsFailedPrecondition(answer(6)));
  CHECK(reducer->tensor(0, 0).num_elements() == kLength);
}

TEST_CASE("who is no other member of the view is refused") {
  TwoWorkers two;
  const auto reducer = two.MakeReducer(1, 1);
  Group group = two.workers.GroupOf(2, 1, 0);
  const auto answer = [&] { return two.stranger.Probe(group).status(); };
  CHECK(answer().ok());
  group.members[0].incarnation = 99;
  CHECK(absl::IsAborted(answer()));
  group = two.workers.GroupOf(2, 1, 0);
  group.job = 8;
  CHECK(absl::IsAborted(answer()));
  group = two.workers.GroupOf(2, 1, 1);  // the receiver itself
  CHECK(absl::IsAborted(answer()));
}

TEST_CASE("a newer view ends the reduction that runs, at once") {
  TwoWorkers two;
  const auto reducer = two.MakeReducer(1, 1);
  Reducing reducing(reducer.get(), kLength);
  CHECK(!reducing.is_over());
  two.workers.service(1)->AnnounceView(7, {1, 1, 1});
  CHECK(!reducing.is_over());
  two.workers.service(1)->AnnounceView(7, {1, 1, 2});
  const absl::Status expected = absl::AbortedError(
      "collective: term 1, epoch 1, view 1 is over: the newer one is term 1, epoch 1, view 2");
  CHECK(reducing.Wait() == expected);
  Reducing again(reducer.get(), kLength);
  CHECK(again.Wait() == expected);
  auto options = two.workers.OptionsFor(two.workers.GroupOf(2, 1, 1), ReductionOver(2, kLength));
  CHECK(absl::IsAborted(PeerGroupReducer::Create(options, two.workers.service(1)).status()));
}

class TwentyBytes final : public OwnState {
 public:
  absl::StatusOr<StatePiece> Read(GlobalStep version, uint64_t offset, uint64_t size) override {
    if (version != GlobalStep(7)) return absl::UnavailableError("this worker has version 7");
    asked = size;
    return StatePiece{.total = 20, .scalars = {0.5f}, .bytes = state.substr(offset, size)};
  }
  const std::string state = "abcdefghijklmnopqrst";
  std::atomic<uint64_t> asked = 0;  // set by the thread that serves
};

TEST_CASE("the views of another job begin anew") {
  TwoWorkers two;
  const auto make = [&](uint64_t job, uint64_t term) {
    Group group = two.workers.GroupOf(2, 1, 1);
    group.job = job;
    group.view.term = term;
    return PeerGroupReducer::Create(two.workers.OptionsFor(group, ReductionOver(2, kLength)),
                                    two.workers.service(1));
  };
  REQUIRE(make(7, 2).ok());
  CHECK(absl::IsAborted(make(7, 1).status()));
  two.workers.service(1)->AnnounceView(8, {1, 1, 1});
  CHECK(make(8, 1).ok());
}

TEST_CASE("a member reads what another one has at a version, a piece at a time") {
  TwoWorkers two;
  const auto reads = two.MakeReducer(0, 1);
  const auto read = [&](int64_t version, uint64_t size) {
    return Await<StatePiece>([&](Callback<StatePiece> done) {
      reads->ReadState(1, GlobalStep(version), 3, size, std::move(done));
    });
  };
  CHECK(absl::IsFailedPrecondition(read(7, 5).status()));  // not in this view yet
  const auto has = two.MakeReducer(1, 1);
  CHECK(absl::IsUnavailable(read(7, 5).status()));  // no variables yet
  TwentyBytes state;
  two.workers.service(1)->SetOwnState(&state);
  CHECK(absl::IsUnavailable(read(8, 5).status()));
  const absl::StatusOr<StatePiece> piece = read(7, 5);
  REQUIRE(piece.ok());
  CHECK(piece->total == 20);
  CHECK(piece->scalars == std::vector<float>{0.5f});
  CHECK(piece->bytes == "defgh");
  // A caller cannot make it send more than a message holds.
  CHECK(read(7, ~uint64_t{0}).ok());
  CHECK(state.asked == uint64_t{1} << 20);
  two.workers.service(1)->SetOwnState(nullptr);
  CHECK(absl::IsUnavailable(read(7, 5).status()));
  two.workers.service(1)->AnnounceView(7, {1, 1, 2});
  CHECK(absl::IsAborted(read(7, 5).status()));
}

TEST_CASE("a message is refused when it says more than 1 KiB of its elements") {
  TwoWorkers two;
  const auto first = two.MakeReducer(0, 1);
  const auto second = two.MakeReducer(1, 1);
  const auto send = [&](size_t header_bytes) {
    SendRequest request = Stranger::RingMessage(two.workers.GroupOf(2, 1, 0), kLength, 0);
    while (request.ByteSizeLong() < header_bytes) request.mutable_algorithm()->push_back('x');
    return two.stranger.SendAndWait(request, BytesOf(two.segment));
  };
  const absl::Status refused = send(1025);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "expected a header of 1024 bytes at most, got 1025"));
  // Read, and at fault for what it says.
  CHECK(!absl::StrContains(send(1024).message(), "expected a header"));
}

TEST_CASE("malformed and foreign bytes are refused and harm nobody") {
  TwoWorkers two;
  const auto first = two.MakeReducer(0, 1);
  const auto second = two.MakeReducer(1, 1);
  RawChannel channel({.address = two.workers.address(1), .name = "worker 1"});
  const Group group = two.workers.GroupOf(2, 1, 0);
  std::vector<SendRequest> requests(8, Stranger::RingMessage(group, kLength, 0));
  requests[0].set_instance(-1);
  requests[1].set_algorithm(std::string("shuffle"));
  requests[2].set_from(1);
  requests[3].set_from(0x80000000);
  requests[4].set_from(0xFFFFFFFF);
  requests[5].set_algorithm(std::string(5000, 'x'));
  requests[6].clear_sender();
  requests[7].set_instance(INT64_MIN);
  for (const SendRequest& request : requests) {
    INFO(request.ShortDebugString().substr(0, 300));
    CHECK(!two.stranger.SendAndWait(request, BytesOf(two.segment)).ok());
  }
  // A header that is none: the fields of a message of another type.
  SendReply reply;
  GroupView view;
  view.set_job(1);
  view.add_members()->set_address(std::string("no identity"));
  absl::Notification told;
  channel.Call("/lockstep.Peer/Send", view, absl::Seconds(10), &reply, [&](absl::Status status) {
    CHECK(!status.ok());
    told.Notify();
  });
  told.WaitForNotification();
  Reducing one(first.get(), kLength);
  Reducing other(second.get(), kLength);
  CHECK(one.Wait().ok());
  CHECK(other.Wait().ok());
  CHECK(TensorView(second->tensor(0, 0)).as<float>()[7] == 2);
}

}  // namespace
}  // namespace lockstep::worker
