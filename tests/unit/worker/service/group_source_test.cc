// Which of the chief's views become reducers, and what is told of them.
#include "worker/service/group_source.h"

#include <catch2/catch.hpp>

#include "tests/support/await.h"
#include "tests/support/manual_time.h"
#include "worker/collective/cross_tower_ops.h"
#include "worker/peer/member_connection.h"
#include "worker/peer/peer_service.h"
#include "worker/strategy/replicated/step_reduction.h"

namespace lockstep::worker {
namespace {

GroupReduction ReductionOver(int workers) {
  const std::vector<TensorSpec> tensors = {{"t", DType::kFloat32, Shape({4})}};
  const ScheduleSpec spec{workers == 1 ? ReductionAlgorithm::kPscpu : ReductionAlgorithm::kXring,
                          {workers, 1}};
  return {spec.topology, tensors, MakeBatchPlan(PackingPlan::Unpacked(tensors), spec).value(),
          true};
}

// Answers no call before it is cancelled. For one thread.
class SilentConnection final : public MemberConnection {
 public:
  ~SilentConnection() override { Cancel(); }

  void Send(SendRequest, std::span<const std::byte>, StatusCallback done) override {
    calls_.push_back(std::move(done));
  }
  void Compare(CompareRequest, StatusCallback done) override { calls_.push_back(std::move(done)); }
  void Probe(ProbeRequest, Callback<ProbeReply> done) override {
    calls_.emplace_back([done = std::move(done)](absl::Status status) mutable { done(status); });
  }
  void ReadState(ReadStateRequest, Callback<ReadStateReply> done) override {
    calls_.emplace_back([done = std::move(done)](absl::Status status) mutable { done(status); });
  }
  void Cancel() override {
    std::vector<StatusCallback> calls = std::exchange(calls_, {});
    for (StatusCallback& done : calls) done(absl::CancelledError("calls were cancelled"));
  }

 private:
  std::vector<StatusCallback> calls_;
};

// Worker 1, incarnation 11, of three.
struct Fixture {
  Fixture() {
    source = std::make_unique<GroupSource>(GroupSourceOptions{
        .worker = 1,
        .incarnation = 11,
        .num_workers = 3,
        .reduction =
            [this](int workers) {
              if (on_make_reducer) std::exchange(on_make_reducer, nullptr)();
              return ReductionOver(workers);
            },
        .shared_memory = false,
        .peers = &peers,
        .timer = &time,
        .connect = [](const Group::Member&) { return std::make_unique<SilentConnection>(); }});
  }
  ~Fixture() { source->Cancel(); }

  // Members are "incarnation of each worker"; those in `holders` have the variables.
  static GroupView View(uint64_t term, uint64_t number, int64_t step,
                        std::vector<uint64_t> incarnations = {10, 11, 12},
                        std::vector<uint32_t> holders = {}) {
    GroupView view;
    view.set_job(1);
    view.set_term(term);
    view.set_epoch(1);
    view.set_view(number);
    view.set_step(step);
    for (uint32_t worker = 0; worker < incarnations.size(); ++worker) {
      GroupMember* member = view.add_members();
      member->set_worker(worker);
      member->set_incarnation(incarnations[worker]);
      member->set_address(absl::StrCat("127.0.0.1:", worker + 1));
      member->set_has_variables(std::ranges::find(holders, worker) != holders.end());
    }
    return view;
  }
  Answer<ReducerOfGroup> Next() {
    Answer<ReducerOfGroup> answer;
    source->Next(answer.done());
    return answer;
  }

  test::ManualTime time;
  PeerService peers;
  std::function<void()> on_make_reducer;  // called once, when the view is taken and not yet told
  std::unique_ptr<GroupSource> source;
};

TEST_CASE("a view is told once, and an older one never") {
  Fixture f;
  auto first = f.Next();
  CHECK_FALSE(first.answered());
  f.source->SetView(f.View(1, 2, 30));
  REQUIRE(first.answered());
  const ReducerOfGroup group = *first.Wait();
  CHECK(group.step == GlobalStep(30));
  CHECK_FALSE(group.is_first);
  CHECK_FALSE(group.is_first_holder);
  CHECK(group.holders.empty());
  auto second = f.Next();
  f.source->SetView(f.View(1, 2, 30));
  f.source->SetView(f.View(1, 1, 20));
  CHECK_FALSE(second.answered());
}

TEST_CASE("who has the variables is told by position, this worker left out") {
  Fixture f;
  auto next = f.Next();
  f.source->SetView(f.View(1, 1, 30, {20, 11, 12}, {1, 2}));
  const ReducerOfGroup group = *next.Wait();
  CHECK(group.holders == std::vector<int>{2});
  CHECK(group.is_first_holder);
  CHECK_FALSE(group.is_first);
  CHECK(group.states != nullptr);
}

TEST_CASE("a view without this process ends it") {
  Fixture f;
  auto next = f.Next();
  f.source->SetView(f.View(1, 1, 30, {10, 99, 12}));
  CHECK(absl::IsAborted(next.Wait().status()));
}

TEST_CASE("another chief's view of the same members is passed over") {
  Fixture f;
  auto first = f.Next();
  f.source->SetView(f.View(1, 4, 30));
  REQUIRE(first.Wait().ok());
  auto next = f.Next();
  f.source->SetView(f.View(2, 1, 50));
  CHECK_FALSE(next.answered());
  SECTION("a failure is one of that view: no other member may have taken it up") {
    const bool has_failed_before = GENERATE(false, true);
    f.source->NoteFailure({1, 1, 4});
    if (has_failed_before) f.source->SetView(f.View(3, 1, 50));
    CHECK_FALSE(next.answered());
    CHECK(f.source->failed_view() == GroupViewId{has_failed_before ? 3u : 2u, 1, 1});
    f.source->SetView(f.View(3, 2, 50));
    REQUIRE(next.answered());
    CHECK(f.source->failed_view() == GroupViewId());
  }
  SECTION("that chief's next view counts, and one with other members") {
    const bool has_others = GENERATE(false, true);
    f.source->SetView(f.View(2, 2, 51, {has_others ? 20ul : 10ul, 11, 12}));
    REQUIRE(next.answered());
    CHECK(next.Wait()->step == GlobalStep(51));
  }
}

TEST_CASE("the view that failed is told to the chief until there is a newer one") {
  Fixture f;
  auto first = f.Next();
  f.source->SetView(f.View(1, 4, 30));
  REQUIRE(first.Wait().ok());
  CHECK(f.source->failed_view() == GroupViewId());
  auto next = f.Next();
  f.source->NoteFailure({1, 1, 4});
  CHECK(f.source->failed_view() == GroupViewId{1, 1, 4});
  CHECK_FALSE(next.answered());
  f.source->SetView(f.View(1, 5, 30));
  CHECK(next.answered());
  CHECK(f.source->failed_view() == GroupViewId());
}

TEST_CASE("a view that nobody has asked for yet has not failed") {
  Fixture f;
  auto first = f.Next();
  f.source->SetView(f.View(1, 4, 30));
  REQUIRE(first.Wait().ok());
  f.source->SetView(f.View(1, 5, 30));
  f.source->NoteFailure({1, 1, 4});
  CHECK(f.source->failed_view() == GroupViewId{1, 1, 4});
  CHECK(f.Next().Wait()->step == GlobalStep(30));
  CHECK(f.source->failed_view() == GroupViewId());
}

TEST_CASE("a failure of an older view than the one that was told is not one of that") {
  Fixture f;
  auto first = f.Next();
  f.source->SetView(f.View(1, 4, 30));
  REQUIRE(first.Wait().ok());
  auto next = f.Next();
  f.source->SetView(f.View(1, 5, 30));
  REQUIRE(next.Wait().ok());
  f.source->NoteFailure({1, 1, 4});
  CHECK(f.source->failed_view() == GroupViewId());
}

TEST_CASE("a reduction that is refused while the next group is made is not one of that") {
  Fixture f;
  StepReduction steps(f.source.get(),
                      [](const ReducerOfGroup&, StatusCallback done) { done(absl::OkStatus()); });
  Answer<ReducerOfGroup> group;
  steps.AwaitGroup(group.done());
  f.source->SetView(f.View(1, 4, 30));
  REQUIRE(group.Wait().ok());
  const Tensor gradient(DType::kFloat32, Shape({4}));
  const std::vector<std::vector<TensorView>> gradients = {{gradient.view()}};
  absl::Status reduced;
  f.on_make_reducer = [&] {
    steps.Reduce(GlobalStep(30), gradients, [&](absl::Status status) { reduced = status; });
  };
  f.source->SetView(f.View(1, 5, 30));
  REQUIRE_FALSE(f.on_make_reducer);
  CHECK(f.source->failed_view() == GroupViewId());
  f.source->Cancel();
  CHECK(absl::IsCancelled(reduced));
}

TEST_CASE("cancelling ends the pending call, and later ones") {
  Fixture f;
  auto first = f.Next();
  f.source->Cancel();
  CHECK(absl::IsCancelled(first.Wait().status()));
  f.source->SetView(f.View(1, 1, 30));
  CHECK(absl::IsCancelled(f.Next().Wait().status()));
}

TEST_CASE("one worker reduces by itself, and is told so once") {
  GroupSource source({.first_step = GlobalStep(7), .reduction = ReductionOver});
  Answer<ReducerOfGroup> first;
  source.Next(first.done());
  const ReducerOfGroup group = *first.Wait();
  CHECK(group.step == GlobalStep(7));
  CHECK(group.is_first);
  Answer<ReducerOfGroup> second;
  source.Next(second.done());
  CHECK_FALSE(second.answered());
  source.NoteFailure(group.view);
  CHECK(source.failed_view() == GroupViewId());
  source.Cancel();
  CHECK(absl::IsCancelled(second.Wait().status()));
}

}  // namespace
}  // namespace lockstep::worker
