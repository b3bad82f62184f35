// What takes long keeps nobody waiting: versions that are kept, and the end of an epoch.
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <thread>

#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::OneVariable;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;

// Does what it is given when it is told to.
class Background {
 public:
  ShardOptions options() {
    return {.run_in_background = [this](const std::function<void()>& work) {
      work_.push_back(work);
      return true;
    }};
  }
  void Run() {
    while (!work_.empty()) {
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      work();
    }
  }
  bool HasWork() const { return !work_.empty(); }

 private:
  std::deque<std::function<void()>> work_;
};

constexpr int64_t kElements = 1 << 20;

Message Large(uint64_t push_seq, int64_t stamp, float value) {
  Message message(IdentityOf(0), push_seq, stamp);
  message.Whole(0, Shape({kElements}), std::vector<float>(kElements, value));
  return message;
}

PullArguments SlotOf(int64_t version) {
  PullArguments arguments{IdentityOf(0), GlobalStep(version), {{VariableId(0), 0, 8}}};
  arguments.slot = "momentum";
  return arguments;
}

TEST_CASE("a step is not held up by the slots that it keeps, which are those of their version") {
  Background background;
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {kElements}}}), 1, 1);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  Harness h(plan, background.options());
  const auto kept =
      h.Grant({.command = kCommand, .step = GlobalStep(0), .learning_rate = 1, .keep_slots = true});
  const auto next = h.Grant(1, 1);
  REQUIRE(h.shard.Push(Large(1, 0, 1).Ready(1 << 20)).ok());
  CHECK(kept.status().ok());
  REQUIRE(h.shard.Push(Large(2, 1, 3).Ready(1 << 20)).ok());
  CHECK(next.status().ok());
  CHECK_FALSE(background.HasWork());
  Reply<PullResult> slot;
  h.shard.Pull(SlotOf(1), slot.done());
  REQUIRE(slot.status().ok());
  CHECK(test::ValuesOf(slot->pieces[0]) == std::vector<float>{1, 1});
  CHECK(h.Pull(0, 1, {{VariableId(0), 0, 4}})->version == GlobalStep(1));
  // What is released is let go there.
  REQUIRE(h.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK(background.HasWork());
  background.Run();
}

TEST_CASE("a step is not held up by the table that it keeps") {
  Background background;
  Harness h(PlanOf(PlacementOf({{.name = "t", .dims = {kElements, 1}, .sparse = true}}), 1, 1),
            background.options());
  const auto kept = h.Grant(
      {.command = kCommand, .step = GlobalStep(0), .learning_rate = 1, .keep_values = true});
  const Shape shape({kElements, 1});
  REQUIRE(h.shard.Push(Message(IdentityOf(0), 1, 0).Rows(0, shape, {7}, {2}).Ready()).ok());
  CHECK(kept.status().ok());
  CHECK_FALSE(background.HasWork());
  for (int64_t step = 1; step < 4; ++step) {
    h.Grant(step, 1);
    const auto push_seq = static_cast<uint64_t>(step) + 1;
    REQUIRE(
        h.shard.Push(Message(IdentityOf(0), push_seq, step).Rows(0, shape, {7}, {2}).Ready()).ok());
  }
  const auto row = h.Pull(0, 1, {{.variable = VariableId(0), .rows = {7}}});
  REQUIRE(row.status().ok());
  CHECK(row->version == GlobalStep(1));
  CHECK(test::ValuesOf(row->pieces[0])[0] == -2);
  const auto bytes = h.Pull(0, 1, {{VariableId(0), 24, 12}});
  CHECK(test::ValuesOf(bytes->pieces[0]) == std::vector<float>{0, -2, 0});
}

TEST_CASE("an asynchronous shard keeps what it has, and goes on") {
  Background background;
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {kElements}}}, 2), 1, 1);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  plan.mutable_optimizer()->mutable_learning_rate()->set_base(1);
  plan.set_asynchronous(true);
  Harness h(plan, background.options());
  REQUIRE(h.shard.Push(Large(1, 0, 1).Ready(1 << 20)).ok());
  const auto kept = h.Grant({.command = kCommand, .step = GlobalStep(0), .keep_slots = true});
  CHECK(kept.status().ok());
  CHECK_FALSE(background.HasWork());
  REQUIRE(h.shard.Push(Large(2, 1, 3).Ready(1 << 20)).ok());
  CHECK(h.shard.GetView().shard_step == GlobalStep(2));
  Reply<PullResult> slot;
  h.shard.Pull(SlotOf(1), slot.done());
  REQUIRE(slot.status().ok());
  CHECK(test::ValuesOf(slot->pieces[0])[0] == 1);
}

View NextEpoch() {
  View view = test::ViewOf(1);
  view.epoch = Epoch(2);
  return view;
}

WorkerIdentity InNextEpoch() {
  WorkerIdentity worker = IdentityOf(0);
  worker.epoch = Epoch(2);
  return worker;
}

TEST_CASE("an epoch begins while variables of the last one are made, and they come to nothing") {
  Shard* made = nullptr;
  ShardOptions options;
  int num_made = 0;
  options.make_value_memory = [&](uint64_t) -> std::optional<LentMemory> {
    if (++num_made > 1) return std::nullopt;
    const auto state = made->SetView(NextEpoch());
    REQUIRE(state.ok());
    CHECK_FALSE(state->has_variables);
    Reply<PullResult> pull;
    made->Pull({InNextEpoch(), GlobalStep(0), {{VariableId(0)}}}, pull.done());
    CHECK(absl::IsUnavailable(pull.status()));
    return std::nullopt;
  };
  Shard shard(options);
  made = &shard;
  REQUIRE(shard.SetView(test::ViewOf(1)).ok());
  CreateVariablesRequest plan = OneVariable();
  plan.set_shared_memory(true);
  CHECK(absl::IsAborted(shard.CreateVariables(plan).status()));
  CHECK_FALSE(shard.GetView().has_variables);
  plan.set_start_step(5);
  REQUIRE(shard.CreateVariables(plan).ok());
  CHECK(shard.GetView().shard_step == GlobalStep(5));
}

TEST_CASE("an epoch begins while a step of the last one is at work, and reaches nothing of it") {
  Harness h(OneVariable());
  int calls = 0;
  h.shard.Grant({.command = kCommand, .step = GlobalStep(0), .learning_rate = 1},
                [&](const absl::StatusOr<ClosedStep>& closed) {
                  ++calls;
                  CHECK(closed.ok());
                  // The thread that closes the step has not left it yet.
                  const auto state = h.shard.SetView(NextEpoch());
                  REQUIRE(state.ok());
                  CHECK_FALSE(state->has_variables);
                  CHECK(h.shard.Report().variables == 0);
                  Reply<PullResult> pull;
                  h.shard.Pull({InNextEpoch(), GlobalStep(1), {{VariableId(0)}}}, pull.done());
                  CHECK(absl::IsFailedPrecondition(pull.status()));
                  CHECK(absl::IsFailedPrecondition(h.Grant(1, 1).status()));
                });
  h.Push(0, 1, 0, 0, {1});
  CHECK(calls == 1);
  CreateVariablesRequest plan = OneVariable();
  plan.set_start_step(5);
  REQUIRE(h.shard.CreateVariables(plan).ok());
  CHECK(h.shard.GetView().shard_step == GlobalStep(5));
}

TEST_CASE("variables are made when the memory of those before them is free") {
  std::atomic<bool> is_made = false, is_free = false, was_free = false;
  MemoryClaims memory([&]() -> std::optional<uint64_t> {
    was_free = is_free.load();
    return std::nullopt;
  });
  std::vector<std::jthread> background;  // joined before the claims, which they release, are gone
  const ShardOptions options{.memory = &memory,
                             .run_in_background = [&](const std::function<void()>& work) {
                               background.emplace_back([&, work] {
                                 while (!is_made) std::this_thread::yield();
                                 for (int i = 0; i < 1000; ++i) std::this_thread::yield();
                                 is_free = true;
                                 work();
                               });
                               return true;
                             }};
  Harness h(PlanOf(PlacementOf({{"w", {kElements}}}), 1, 1), options);
  View view = test::ViewOf(1);
  view.epoch = Epoch(2);
  CHECK(h.shard.SetView(view).ok());
  is_made = true;
  CHECK(h.shard.CreateVariables(PlanOf(PlacementOf({{"w", {kElements}}}), 1, 1)).ok());
  CHECK(was_free);
}

}  // namespace
}  // namespace lockstep::ps
