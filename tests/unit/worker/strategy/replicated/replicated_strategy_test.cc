// What a worker tells its source of groups while it reads the variables to join with.
#include "worker/strategy/replicated/replicated_strategy.h"

#include <catch2/catch.hpp>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tests/support/await.h"
#include "tests/support/bytes_transport.h"
#include "tests/support/made_tensors.h"
#include "tests/support/manual_time.h"
#include "tests/unit/worker/strategy/replicated/fake_reducer_source.h"
#include "tests/unit/worker/strategy/replicated/layout_for_tests.h"

namespace lockstep::worker {
namespace {

// Destroying a strategy takes less where nothing is waited for.
constexpr absl::Duration kMoment = absl::Milliseconds(50);

// Members that answer when the test says so.
class HeldMembers final : public MemberStates {
 public:
  void ReadState(int, GlobalStep, uint64_t, uint64_t, Callback<StatePiece> done) override {
    ++reads;
    pending = std::move(done);
  }

  int reads = 0;
  Callback<StatePiece> pending;
};

// Is never called: no worker of these tests has variables to push.
class IdlePs final : public test::BytesTransport {
 public:
  void Cancel() override {}
  void Start(const CallOptions&, google::protobuf::Message*, const std::vector<OutgoingTensor>&,
             google::protobuf::Message*, Callback<ReceivedTensors> done) override {
    done(absl::InternalError("ps 0: expected no call"));
  }
};

// Waits for the group that it joins at step 5.
struct JoiningWorker {
  JoiningWorker() { BeginStep(values.done()); }
  explicit JoiningWorker(Callback<StepValues> told) { BeginStep(std::move(told)); }
  void BeginStep(Callback<StepValues> told) {
    auto groups = std::make_unique<FakeReducerSource>();
    source = groups.get();
    ReplicatedOptions options;
    options.shards.shard_names = {"ps 0"};
    options.optimizer.mutable_sgd();
    strategy = *ReplicatedStrategy::Create(
        options, layout, loss,
        {.shards = shards, .timer = &time, .clock = &time, .make_tensor = made.maker()},
        std::move(groups));
    strategy->BeginStep({.step = GlobalStep(5)}, std::move(told));
  }
  void TellGroup() { source->Tell({.step = GlobalStep(5), .holders = {1}, .states = &members}); }

  const VariableLayout layout = LayoutForTests();
  const VariableLayout loss = *ReplicatedStrategy::LossLayout(PlacementForTests());
  IdlePs ps;
  std::vector<TensorTransport*> shards = {&ps};
  test::ManualTime time;
  test::MadeTensors made;
  HeldMembers members;
  FakeReducerSource* source = nullptr;
  Answer<StepValues> values;
  std::unique_ptr<ReplicatedStrategy> strategy;
};

TEST_CASE("values and gradients of a worker that joins are in memory of the maker") {
  JoiningWorker worker;
  worker.TellGroup();
  const std::string state(7 * sizeof(float), '\0');
  std::exchange(worker.members.pending, nullptr)(StatePiece{.total = state.size(), .bytes = state});
  const StepValues values = *worker.values.Wait();
  REQUIRE(values.by_tower.size() == 1);
  for (const TensorView& value : values.by_tower[0].values.views) {
    CHECK(worker.made.Has(value.data));
  }
  for (const size_t trained : {0, 1, 3}) {
    CHECK(worker.made.Has(values.by_tower[0].gradients[trained].data));
  }
}

TEST_CASE("variables whose reading ends with its group are read in the next one") {
  JoiningWorker worker;
  worker.TellGroup();
  REQUIRE(worker.members.reads == 1);
  worker.TellGroup();
  CHECK(worker.members.reads == 1);
  std::exchange(worker.members.pending, nullptr)(absl::CancelledError("the collective has ended"));
  CHECK(worker.members.reads == 2);
  CHECK(worker.source->failures == std::vector<GroupViewId>{FakeReducerSource::View(1)});
  CHECK_FALSE(worker.values.answered());
  std::exchange(worker.members.pending, nullptr)(absl::AbortedError("the group has a newer view"));
  CHECK(worker.source->failures.size() == 1);
  worker.strategy->Cancel();
  CHECK(absl::IsCancelled(worker.values.Wait().status()));
}

// Training that has been told may destroy the strategy while the thread of the answer, which may go
// on with the reduction, is still on its way out.
TEST_CASE("a strategy keeps its reduction until the answer to its reader has returned") {
  Answer<StepValues> told;
  absl::Notification may_return;
  JoiningWorker worker([&, tell = told.done()](absl::StatusOr<StepValues> values) mutable {
    tell(std::move(values));
    may_return.WaitForNotification();
  });
  worker.TellGroup();
  std::thread answering(std::exchange(worker.members.pending, nullptr),
                        absl::InvalidArgumentError("another model"));
  CHECK(absl::IsInvalidArgument(told.Wait().status()));
  LiveCount* const reducers = &worker.source->live;
  std::thread destroying([&] { worker.strategy.reset(); });
  CHECK_FALSE(reducers->AwaitAtMost(0, kMoment));
  may_return.Notify();
  destroying.join();
  answering.join();
}

}  // namespace
}  // namespace lockstep::worker
