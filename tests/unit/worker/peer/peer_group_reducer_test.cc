// Reductions that cannot go on, and messages that come early, twice, or in another order.
#include "worker/peer/peer_group_reducer.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/support/manual_time.h"
#include "tests/unit/worker/peer/peers_for_tests.h"

namespace lockstep::worker {
namespace {

std::unique_ptr<PeerGroupReducer> Make(test::PeerWorkers* workers, const Group& group,
                                       GroupReduction reduction, test::ManualTime* time = nullptr) {
  PeerGroupReducerOptions options = workers->OptionsFor(group, std::move(reduction));
  if (time != nullptr) {
    options.timer = time;
    options.clock = time;
  }
  return PeerGroupReducer::Create(options, workers->service(group.position)).value();
}

// Both ends of a reduction of two workers that differ in something.
void CheckBothRefuse(GroupReduction own, GroupReduction theirs, const std::string& one,
                     const std::string& other) {
  test::PeerWorkers workers(2);
  const int64_t lengths[] = {own.tensors[0].shape->num_elements(),
                             theirs.tensors[0].shape->num_elements()};
  const auto first = Make(&workers, workers.GroupOf(2, 1, 0), std::move(own));
  const auto second = Make(&workers, workers.GroupOf(2, 1, 1), std::move(theirs));
  Reducing reducing_first(first.get(), lengths[0]);
  Reducing reducing_second(second.get(), lengths[1]);
  for (const absl::Status& status : {reducing_first.Wait(), reducing_second.Wait()}) {
    INFO(status);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), one));
    CHECK(absl::StrContains(status.message(), other));
    CHECK(absl::StrContains(status.message(), "worker "));
  }
}

TEST_CASE("members that reduce vectors of other lengths are told so at both ends") {
  CheckBothRefuse(ReductionOver(2, 100), ReductionOver(2, 104), "100", "104");
}

TEST_CASE("members that use other algorithms are told so at both ends") {
  CheckBothRefuse(ReductionOver(2, 100), ReductionOver(2, 100, ReductionAlgorithm::kPscpu),
                  "xring over 100", "pscpu over 100");
}

TEST_CASE("members with other gradients, towers or operations are told so at both ends") {
  GroupReduction other = ReductionOver(2, 100);
  other.tensors[0].name = "kernel";
  CheckBothRefuse(ReductionOver(2, 100), other, "t float32 [100]", "kernel float32 [100]");
  other = ReductionOver(2, 100);
  other.average = true;
  CheckBothRefuse(ReductionOver(2, 100), other, "average: expected ", "false");
}

TEST_CASE("members that reduce other steps are told so at both ends: another group may help") {
  test::PeerWorkers workers(2);
  const auto first = Make(&workers, workers.GroupOf(2, 1, 0), ReductionOver(2, 10));
  const auto second = Make(&workers, workers.GroupOf(2, 1, 1), ReductionOver(2, 10));
  Reducing reducing_first(first.get(), 10, 3);
  Reducing reducing_second(second.get(), 10, 4);
  for (const absl::Status& status : {reducing_first.Wait(), reducing_second.Wait()}) {
    INFO(status);
    CHECK(absl::IsAborted(status));
    CHECK(absl::StrContains(status.message(), "expected step "));
  }
}

TEST_CASE("a message of an instance that is not next ends the collective, naming both") {
  test::PeerWorkers workers(2);
  const auto reducer = Make(&workers, workers.GroupOf(2, 1, 1), ReductionOver(2, 8));
  Stranger stranger(workers, 1);
  SendRequest request = Stranger::RingMessage(workers.GroupOf(2, 1, 0), 8, 0);
  request.set_instance(2);
  const Tensor segment = Tensor::Zeros(DType::kFloat32, Shape({4}));
  const absl::Status status = stranger.SendAndWait(request, BytesOf(segment));
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(), "instance 0"));
  CHECK(absl::StrContains(status.message(), "instance 2"));
  Reducing reducing(reducer.get(), 8);
  CHECK(absl::IsInvalidArgument(reducing.Wait()));
  CHECK(stranger.Probe(workers.GroupOf(2, 1, 0))->code() ==
        static_cast<int>(absl::StatusCode::kInvalidArgument));
}

TEST_CASE("a message of another length, group or algorithm is refused with both named") {
  for (const int wrong : {0, 1, 2}) {
    test::PeerWorkers workers(2);
    const auto reducer = Make(&workers, workers.GroupOf(2, 1, 1), ReductionOver(2, 8));
    Stranger stranger(workers, 1);
    SendRequest request = Stranger::RingMessage(workers.GroupOf(2, 1, 0), 8, 0);
    const std::string right =
        absl::StrCat("group ", absl::Hex(request.group()), ", instance 0, xring over 8 elements");
    if (wrong == 0) request.set_length(9);
    if (wrong == 1) request.set_group(5);
    if (wrong == 2) request.set_algorithm(std::string("rechd"));
    const std::string got = absl::StrCat("group ", absl::Hex(request.group()), ", instance 0, ",
                                         request.algorithm(), " over ", request.length());
    const Tensor segment = Tensor::Zeros(DType::kFloat32, Shape({4}));
    const absl::Status status = stranger.SendAndWait(request, BytesOf(segment));
    INFO(status);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), right));
    CHECK(absl::StrContains(status.message(), got));
    Reducing reducing(reducer.get(), 8);
    CHECK(absl::IsInvalidArgument(reducing.Wait()));
  }
}

TEST_CASE("a message of another size or number ends the collective") {
  for (const int wrong : {0, 1, 2}) {
    test::PeerWorkers workers(2);
    const auto reducer = Make(&workers, workers.GroupOf(2, 1, 1), ReductionOver(2, 8));
    Stranger stranger(workers, 1);
    SendRequest request = Stranger::RingMessage(workers.GroupOf(2, 1, 0), 8, wrong == 0 ? 2 : 0);
    if (wrong == 1) request.set_to(0);
    const Tensor segment = Tensor::Zeros(DType::kFloat32, Shape({wrong == 2 ? 3 : 4}));
    INFO(wrong);
    CHECK(absl::IsInvalidArgument(stranger.SendAndWait(request, BytesOf(segment))));
    Reducing reducing(reducer.get(), 8);
    CHECK(absl::IsInvalidArgument(reducing.Wait()));
  }
}

TEST_CASE("messages that come before they are asked for, in any order and twice, are kept") {
  test::PeerWorkers workers(2);
  const Group group = workers.GroupOf(2, 1, 0);
  const auto reducer = Make(&workers, workers.GroupOf(2, 1, 1), ReductionOver(2, 8));
  REQUIRE(workers.service(0)->Attach(std::make_shared<AnsweringReceiver>(group)).ok());
  Stranger stranger(workers, 1);
  Tensor sum(DType::kFloat32, Shape({4}));
  Tensor copy(DType::kFloat32, Shape({4}));
  for (float& element : sum.as<float>()) element = 41;
  for (float& element : copy.as<float>()) element = 43;
  absl::Notification first, second, repeated;
  absl::Status answers[3];
  const auto tell = [&](int i, absl::Notification* told) {
    return [&answers, i, told](absl::Status status) {
      answers[i] = std::move(status);
      told->Notify();
    };
  };
  // The copy of the other's total first, then the term of the own total, twice.
  stranger.Send(Stranger::RingMessage(group, 8, 1), BytesOf(copy), tell(0, &first));
  stranger.Send(Stranger::RingMessage(group, 8, 0), BytesOf(sum), tell(1, &second));
  stranger.Send(Stranger::RingMessage(group, 8, 0), BytesOf(sum), tell(2, &repeated));
  Reducing reducing(reducer.get(), 8);
  first.WaitForNotification();
  second.WaitForNotification();
  repeated.WaitForNotification();
  CHECK(answers[0].ok());
  // Of two unanswered calls with one message the earlier one is refused.
  CHECK((answers[1].ok() || absl::IsUnavailable(answers[1])));
  CHECK((answers[2].ok() || absl::IsUnavailable(answers[2])));
  CHECK((answers[1].ok() || answers[2].ok()));
  const auto result = TensorView(reducer->tensor(0, 0)).as<float>();
  // A message that was consumed is answered again.
  CHECK(stranger.SendAndWait(Stranger::RingMessage(group, 8, 0), BytesOf(sum)).ok());
  CHECK(reducing.Wait().ok());
  CHECK(std::ranges::count(result, 42) == 4);
  CHECK(std::ranges::count(result, 43) == 4);
}

TEST_CASE("a member that is dead is named within the patience, as unavailable") {
  test::PeerWorkers workers(2);
  test::ManualTime time;
  const auto reducer = Make(&workers, workers.GroupOf(2, 1, 1), ReductionOver(2, 8), &time);
  const std::string address = workers.address(0);
  workers.Stop(0);
  Reducing reducing(reducer.get(), 8);
  // Calls fail in real time, and are repeated when the timer says so.
  while (!reducing.is_over()) time.Advance(absl::Milliseconds(10));
  const absl::Status status = reducing.Wait();
  INFO(status);
  CHECK((absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)));
  CHECK(absl::StrContains(status.message(),
                          absl::StrCat("worker 0 (", address, ") has answered no call for 6s")));
  time.Advance(absl::Seconds(1));
}

TEST_CASE("a member that never answers is named within the patience") {
  test::PeerWorkers workers(3);
  test::ManualTime time;
  // Worker 0 takes part and reduces; worker 2 is silent: nobody polls at its address.
  Group group = workers.GroupOf(3, 1, 1);
  group.members[2].address = "192.0.2.1:1";
  const auto reducer = Make(&workers, group, ReductionOver(3, 9), &time);
  Group first_group = group;
  first_group.position = 0;
  const auto first = Make(&workers, first_group, ReductionOver(3, 9), &time);
  Reducing reducing(reducer.get(), 9);
  Reducing reducing_first(first.get(), 9);
  Stranger alive(workers, 1);
  for (int second = 0; second < 8 && !reducing.is_over(); ++second) {
    CHECK(alive.Probe(first_group).ok());  // takes as long as the answer of worker 0
    time.Advance(absl::Seconds(1));
  }
  const absl::Status status = reducing.Wait();
  INFO(status);
  CHECK(absl::StrContains(status.message(), "worker 2 (192.0.2.1:1)"));
  first->Cancel(absl::CancelledError("enough"));
  CHECK(!reducing_first.Wait().ok());
  time.Advance(absl::Seconds(1));
}

TEST_CASE("a member that calls, and cannot be called, is named within the patience") {
  test::PeerWorkers workers(2);
  test::ManualTime time;
  Group group = workers.GroupOf(2, 1, 0);
  group.members[1].address = "192.0.2.1:1";
  const auto reducer = Make(&workers, group, ReductionOver(2, 9), &time);
  Reducing reducing(reducer.get(), 9);
  Stranger caller(workers, 0);
  for (int second = 0; second < 8; ++second) {
    CHECK(caller.Probe(workers.GroupOf(2, 1, 1)).ok());
    time.Advance(absl::Seconds(1));
  }
  reducer->Cancel(absl::CancelledError("not noticed"));
  const absl::Status status = reducing.Wait();
  INFO(status);
  CHECK(absl::StrContains(status.message(), "worker 1 (192.0.2.1:1)"));
  time.Advance(absl::Seconds(1));
}

TEST_CASE("the error of one member ends the collective of the others") {
  test::PeerWorkers workers(3);
  test::ManualTime time;
  std::vector<std::unique_ptr<PeerGroupReducer>> reducers;
  for (int w = 0; w < 3; ++w) {
    reducers.push_back(Make(&workers, workers.GroupOf(3, 1, w), ReductionOver(3, 9), &time));
  }
  Reducing reducing(reducers[0].get(), 9);
  reducers[1]->Cancel(absl::DataLossError("no gradient"));
  time.Advance(absl::Seconds(1));
  Stranger alive(workers, 0);
  while (!reducing.is_over()) {
    CHECK(alive.Probe(workers.GroupOf(3, 1, 2)).ok());  // takes as long as any call
    time.Advance(absl::Milliseconds(1));
  }
  const absl::Status status = reducing.Wait();
  INFO(status);
  CHECK(absl::StrContains(status.message(), absl::StrCat("worker 1 (", workers.address(1), ")")));
  CHECK(absl::StrContains(status.message(), "no gradient"));
  time.Advance(absl::Seconds(1));
}

TEST_CASE("a reducer that is destroyed ends its reduction with CANCELLED") {
  test::PeerWorkers workers(2);
  auto reducer = Make(&workers, workers.GroupOf(2, 1, 0), ReductionOver(2, 8));
  Reducing reducing(reducer.get(), 8);
  reducer.reset();
  CHECK(absl::IsCancelled(reducing.Wait()));
}

TEST_CASE("the next reduction may begin in the callback of the one before") {
  test::PeerWorkers workers(2);
  std::vector<std::unique_ptr<PeerGroupReducer>> reducers;
  for (int w = 0; w < 2; ++w) {
    reducers.push_back(Make(&workers, workers.GroupOf(2, 1, w), ReductionOver(2, 8)));
  }
  const Tensor gradient = Tensor::Zeros(DType::kFloat32, Shape({8}));
  constexpr int kSteps = 20;
  struct Loop {
    GroupReducer* reducer;
    std::vector<std::vector<TensorView>> gradients;
    int64_t step = 0;
    absl::Status outcome;
    absl::Notification over;
    void Next() {
      reducer->Reduce(step, gradients, [this](absl::Status status) {
        outcome.Update(status);
        if (!outcome.ok() || ++step == kSteps) return over.Notify();
        Next();
      });
    }
  };
  std::vector<std::unique_ptr<Loop>> loops;
  for (int w = 0; w < 2; ++w) {
    loops.push_back(std::unique_ptr<Loop>(new Loop{reducers[w].get(), {{gradient.view()}}}));
  }
  for (const auto& loop : loops) loop->Next();
  for (const auto& loop : loops) {
    loop->over.WaitForNotification();
    CHECK(loop->outcome.ok());
    CHECK(loop->step == kSteps);
  }
}

TEST_CASE("a group of one reduces its own towers before Reduce returns") {
  test::PeerWorkers workers(1);
  const std::vector<TensorSpec> tensors = {{"t", DType::kFloat32, Shape({5})}};
  const ScheduleSpec spec{ReductionAlgorithm::kPscpuPscpu, {1, 3}};
  auto options = workers.OptionsFor(
      workers.GroupOf(1, 1, 0),
      {spec.topology, tensors, MakeBatchPlan(PackingPlan::Unpacked(tensors), spec).value(), true});
  options.shared_memory = true;
  const auto reducer = PeerGroupReducer::Create(options, workers.service(0)).value();
  Tensor gradient(DType::kFloat32, Shape({5}));
  for (float& element : gradient.as<float>()) element = 4;
  const std::vector<std::vector<TensorView>> gradients(3, {gradient.view()});
  bool is_over = false;
  reducer->Reduce(0, gradients, [&](absl::Status status) {
    CHECK(status.ok());
    is_over = true;
  });
  CHECK(is_over);
  for (int tower = 0; tower < 3; ++tower) {
    CHECK(TensorView(reducer->tensor(tower, 0)).as<float>()[4] == 4);
  }
  CHECK(reducer->traffic().across == Traffic());
}

TEST_CASE("a reduction that is not the group's is refused") {
  test::PeerWorkers workers(2);
  const auto error = [&](GroupReduction reduction, size_t message_bytes) {
    auto options = workers.OptionsFor(workers.GroupOf(2, 1, 0), std::move(reduction));
    options.message_bytes = message_bytes;
    return std::string(PeerGroupReducer::Create(options, workers.service(0)).status().message());
  };
  CHECK(error(ReductionOver(3, 8), 8) == "reduction over a group: workers: expected 2, got 3");
  CHECK(absl::StrContains(error(ReductionOver(2, 8), 7), "message_bytes: expected 8 to "));
  GroupReduction reduction = ReductionOver(2, 8);
  reduction.plan.algorithms.clear();
  CHECK(absl::StrContains(error(reduction, 8), "schedules and algorithms: expected 1"));
  reduction = ReductionOver(2, 8);
  reduction.plan.schedules = ReductionOver(4, 8).plan.schedules;
  CHECK(absl::StrContains(error(reduction, 8), "participants: expected 2, got 4"));
  reduction = ReductionOver(2, 8);
  reduction.tensors[0].shape = Shape({9});
  CHECK(absl::StrContains(error(reduction, 8), "tensor t: expected 9 elements, got 8"));
}

}  // namespace
}  // namespace lockstep::worker
