// A copy that is made while the job trains, and gets its primary's state in parts.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/lost_variables.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::kCommand;
using test::kJob;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

constexpr int64_t kBegin = 7;

WorkerIdentity Primary() {
  return {kJob, Epoch(1), kPrimaryOfCopy.worker, kPrimaryOfCopy.incarnation};
}

View CopysView() {
  View view = test::ViewOf(0);
  view.is_copy = true;
  return view;
}

CreateVariablesRequest Plan() {
  CreateVariablesRequest plan =
      PlanOf(PlacementOf({{"a", {2}, 0, true, 5}, {"b", {1}, 0, true, 5}}), 1, 1);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(1);
  plan.set_awaits_state(true);
  return plan;
}

// A message of state with its payload.
class StateMessage {
 public:
  explicit StateMessage(int64_t step) {
    arguments_.worker = Primary();
    arguments_.step = GlobalStep(step);
  }
  StateMessage& Piece(uint32_t variable, const std::string& slot, uint64_t first,
                      const std::vector<float>& values) {
    arguments_.pieces.push_back(
        {VariableId(variable), slot, first * sizeof(float), values.size() * sizeof(float)});
    const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
    payload_.insert(payload_.end(), bytes, bytes + values.size() * sizeof(float));
    return *this;
  }
  StateArguments& arguments() { return arguments_; }
  const StateArguments& Ready() {
    arguments_.tensors = ReceivedTensors(ReceivedTensors::Segments{payload_});
    return arguments_;
  }

 private:
  StateArguments arguments_;
  std::vector<std::byte> payload_;
};

struct NewCopy : test::Harness {
  NewCopy() {
    REQUIRE(shard.SetView(CopysView()).ok());
    REQUIRE(shard.CreateVariables(Plan()).ok());
  }
  absl::StatusOr<bool> Begin(int64_t step = kBegin) {
    StateMessage message(step);
    message.arguments().begins = true;
    return shard.PutState(message.arguments());
  }
  absl::StatusOr<bool> Complete(int64_t step) {
    StateMessage message(step);
    message.arguments().completes = true;
    return shard.PutState(message.arguments());
  }
  // All of the state, and that it is complete.
  void PutAll(int64_t step) {
    StateMessage message(step);
    message.Piece(0, "", 0, {1, 2}).Piece(0, "momentum", 0, {4, 6});
    message.Piece(1, "", 0, {3}).Piece(1, "momentum", 0, {8});
    REQUIRE(shard.PutState(message.Ready()).ok());
    REQUIRE(Complete(step).value());
  }
  // The primary's mean of one variable.
  absl::StatusOr<PushResult> Mean(int64_t step, uint32_t variable,
                                  const std::vector<float>& values) {
    Message message(Primary(), static_cast<uint64_t>(step) + 1, step);
    message.Whole(variable, Shape({static_cast<int64_t>(values.size())}), values);
    message.arguments().mean = MeanArguments{.learning_rate = 1};
    return shard.Push(message.Ready());
  }
  void Step(int64_t step) {
    REQUIRE(Mean(step, 0, {0, 2}).ok());
    REQUIRE(Mean(step, 1, {0}).ok());
  }
};

TEST_CASE("a copy that awaits state begins where its primary is") {
  NewCopy copy;
  CHECK(copy.shard.GetView().awaits_state);
  CHECK(copy.shard.GetView().has_variables);
  CHECK(absl::IsUnavailable(copy.Mean(0, 1, {1}).status()));
  REQUIRE(copy.Begin().ok());
  CHECK(copy.shard.GetView().shard_step == GlobalStep(kBegin));
  const ShardActivity before = copy.shard.Activity();
  REQUIRE(copy.Begin().ok());
  CHECK(copy.shard.Activity() != before);
  copy.Step(kBegin);
  CHECK(absl::IsFailedPrecondition(copy.Begin(kBegin + 1).status()));
}

TEST_CASE("a copy that a late message has begun begins anew at its primary's step") {
  NewCopy copy;
  REQUIRE(copy.Begin(kBegin - 3).ok());
  CHECK(copy.shard.GetView().shard_step == GlobalStep(kBegin - 3));
  REQUIRE(copy.Begin().ok());
  CHECK(copy.shard.GetView().shard_step == GlobalStep(kBegin));
  // The late one comes again, or another one.
  CHECK(absl::IsFailedPrecondition(copy.Begin(kBegin - 3).status()));
  CHECK(absl::IsFailedPrecondition(copy.Begin(kBegin - 1).status()));
  CHECK(copy.shard.GetView().shard_step == GlobalStep(kBegin));
  copy.Step(kBegin);
  copy.PutAll(kBegin + 1);
  copy.Step(kBegin + 1);
  REQUIRE(copy.shard.SetView(test::ViewOf(1)).ok());
  CHECK(copy.Read(kBegin + 1, 0) == std::vector<float>{1, 2});
  CHECK(copy.Read(kBegin + 2, 0) == std::vector<float>{-1, -3});
}

TEST_CASE("a copy that has taken something does not begin anew") {
  NewCopy copy;
  REQUIRE(copy.Begin().ok());
  SECTION("a piece of the state") {
    StateMessage part(kBegin);
    part.Piece(1, "", 0, {3});
    REQUIRE(copy.shard.PutState(part.Ready()).ok());
  }
  SECTION("the mean of one variable") { REQUIRE(copy.Mean(kBegin, 1, {0}).ok()); }
  SECTION("a part of a mean") {
    Message message(Primary(), 1, kBegin);
    message.Chunk(0, Shape({2}), {0, 0}, 0, sizeof(float));
    message.arguments().mean = MeanArguments{.learning_rate = 1};
    REQUIRE(copy.shard.Push(message.Ready()).ok());
  }
  CHECK(absl::IsFailedPrecondition(copy.Begin(kBegin + 1).status()));
  CHECK(copy.shard.GetView().shard_step == GlobalStep(kBegin));
}

TEST_CASE("a copy has the state that it was sent, and what means have made of it since") {
  NewCopy copy;
  REQUIRE(copy.Begin().ok());
  copy.Step(kBegin);
  copy.PutAll(kBegin + 1);
  // Until then the version before was made without the state.
  CHECK(copy.shard.GetView().awaits_state);
  copy.Step(kBegin + 1);
  CHECK_FALSE(copy.shard.GetView().awaits_state);
  REQUIRE(copy.shard.SetView(test::ViewOf(1)).ok());
  CHECK(copy.Read(kBegin + 1, 0) == std::vector<float>{1, 2});
  CHECK(copy.Read(kBegin + 2, 0) == std::vector<float>{-1, -3});
  CHECK(copy.Read(kBegin + 2, 1) == std::vector<float>{-1});
}

TEST_CASE("a copy that awaits state does not become the primary, and stays one") {
  NewCopy copy;
  REQUIRE(copy.Begin().ok());
  const absl::Status refused = copy.shard.SetView(test::ViewOf(1)).status();
  CHECK(IsNoVariables(refused));
  CHECK(absl::StrContains(refused.message(), "the copy of shard 0 awaits state"));
  copy.Step(kBegin);
  copy.PutAll(kBegin + 1);
}

TEST_CASE("state is not complete before all bytes have come") {
  NewCopy copy;
  REQUIRE(copy.Begin().ok());
  copy.Step(kBegin);
  StateMessage most(kBegin + 1);
  most.Piece(0, "", 0, {1, 2}).Piece(0, "momentum", 1, {6}).Piece(1, "", 0, {3});
  REQUIRE_FALSE(copy.shard.PutState(most.Ready()).value());
  const absl::Status missing = copy.Complete(kBegin + 1).status();
  CHECK(absl::IsFailedPrecondition(missing));
  CHECK(absl::StrContains(missing.message(), "\"a/momentum\""));
}

TEST_CASE("pieces of a step that the copy is not at change nothing") {
  NewCopy copy;
  StateMessage early(kBegin + 1);
  early.Piece(1, "", 0, {100});
  CHECK(absl::IsFailedPrecondition(copy.shard.PutState(early.Ready()).status()));
  REQUIRE(copy.Begin().ok());
  CHECK(absl::IsUnavailable(copy.shard.PutState(early.Ready()).status()));
  copy.Step(kBegin);
  copy.PutAll(kBegin + 1);
  REQUIRE(copy.Mean(kBegin + 1, 1, {0}).ok());
  // All is there: a message that comes again is answered so.
  CHECK(copy.shard.PutState(early.Ready()).value());
  REQUIRE(copy.Mean(kBegin + 1, 0, {0, 2}).ok());
  REQUIRE(copy.shard.SetView(test::ViewOf(1)).ok());
  CHECK(copy.Read(kBegin + 2, 1) == std::vector<float>{-1});
}

TEST_CASE("a message that comes again after the step has begun is too late") {
  NewCopy copy;
  REQUIRE(copy.Begin().ok());
  copy.Step(kBegin);
  StateMessage part(kBegin + 1);
  part.Piece(1, "", 0, {3});
  REQUIRE(copy.shard.PutState(part.Ready()).ok());
  REQUIRE(copy.shard.PutState(part.Ready()).ok());
  REQUIRE(copy.Mean(kBegin + 1, 1, {1}).ok());
  CHECK(absl::IsAborted(copy.shard.PutState(part.Ready()).status()));
}

TEST_CASE("malformed state is refused, naming what is wrong") {
  NewCopy copy;
  const auto refusal = [&](StateMessage message) {
    const absl::Status status = copy.shard.PutState(message.Ready()).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  StateMessage begins(-1);
  begins.arguments().begins = true;
  CHECK(absl::StrContains(refusal(begins), "begins at step -1"));
  StateMessage scalars(kBegin);
  scalars.arguments().begins = true;
  scalars.arguments().scalars = {1};
  CHECK(absl::StrContains(refusal(scalars), "expected 0, got 1"));
  REQUIRE(copy.Begin().ok());
  CHECK(absl::StrContains(refusal(StateMessage(kBegin).Piece(0, "adam", 0, {1})),
                          "no slot \"adam\""));
  CHECK(absl::StrContains(refusal(StateMessage(kBegin).Piece(9, "", 0, {1})), "9"));
  CHECK(absl::StrContains(refusal(StateMessage(kBegin).Piece(1, "", 1, {1})), "bytes in [0, 4)"));
  StateMessage torn(kBegin);
  torn.Piece(1, "", 0, {1}).arguments().pieces[0].size = 2;
  CHECK(absl::StrContains(refusal(torn), "expected 2 bytes"));
}

TEST_CASE("state is for a copy alone, and from its primary") {
  NewCopy copy;
  StateMessage stranger(kBegin);
  stranger.arguments().begins = true;
  stranger.arguments().worker = test::IdentityOf(0);
  CHECK(absl::IsUnavailable(copy.shard.PutState(stranger.arguments()).status()));

  CreateVariablesRequest plan = Plan();
  plan.set_awaits_state(false);
  test::Harness primary(plan);
  StateMessage begins(kBegin);
  begins.arguments().begins = true;
  CHECK_FALSE(primary.shard.PutState(begins.arguments()).ok());
  test::Harness whole;
  REQUIRE(whole.shard.SetView(CopysView()).ok());
  REQUIRE(whole.shard.CreateVariables(plan).ok());
  CHECK_FALSE(whole.shard.GetView().awaits_state);
  CHECK(absl::IsFailedPrecondition(whole.shard.PutState(begins.arguments()).status()));
}

TEST_CASE("a request for a new copy that comes late leaves the copy as it is") {
  NewCopy copy;
  REQUIRE(copy.shard.CreateVariables(Plan()).ok());
  REQUIRE(copy.Begin().ok());
  REQUIRE(copy.shard.CreateVariables(Plan()).ok());
  copy.Step(kBegin);
  copy.PutAll(kBegin + 1);
  copy.Step(kBegin + 1);
  REQUIRE_FALSE(copy.shard.GetView().awaits_state);
  SECTION("while no other view has come") {}
  SECTION("after the views of a pair") {
    View view = CopysView();
    view.number = 9;
    REQUIRE(copy.shard.SetView(view).ok());
  }
  REQUIRE(copy.shard.CreateVariables(Plan()).ok());
  CHECK_FALSE(copy.shard.GetView().awaits_state);
  CHECK(copy.shard.GetView().shard_step == GlobalStep(kBegin + 2));
}

TEST_CASE("a view that makes a copy counts once") {
  NewCopy copy;
  View view = CopysView();
  view.makes_copy = true;
  view.number = 3;
  REQUIRE(copy.shard.SetView(view).ok());
  CHECK_FALSE(copy.shard.GetView().has_variables);
  REQUIRE(copy.shard.CreateVariables(Plan()).ok());
  REQUIRE(copy.Begin().ok());
  REQUIRE(copy.shard.SetView(view).ok());
  CHECK(copy.shard.GetView().has_variables);
  CHECK(copy.shard.GetView().shard_step == GlobalStep(kBegin));
  // Another chief counts anew.
  view.command.set_term(2);
  view.number = 1;
  REQUIRE(copy.shard.SetView(view).ok());
  CHECK_FALSE(copy.shard.GetView().has_variables);
}

TEST_CASE("a copy that was not made by state is replaced by one that awaits it") {
  test::Harness copy;
  REQUIRE(copy.shard.SetView(CopysView()).ok());
  CreateVariablesRequest plan = Plan();
  plan.set_awaits_state(false);
  REQUIRE(copy.shard.CreateVariables(plan).ok());
  REQUIRE(copy.shard.CreateVariables(Plan()).ok());
  CHECK(copy.shard.GetView().awaits_state);
}

TEST_CASE("a copy is made anew by a view that says so") {
  NewCopy copy;
  REQUIRE(copy.Begin().ok());
  copy.Step(kBegin);
  View view = CopysView();
  view.makes_copy = true;
  view.number = 1;
  REQUIRE(copy.shard.SetView(view).ok());
  REQUIRE(copy.shard.CreateVariables(Plan()).ok());
  REQUIRE(copy.Begin(kBegin + 20).ok());
  copy.Step(kBegin + 20);
  copy.PutAll(kBegin + 21);
  copy.Step(kBegin + 21);
  CHECK_FALSE(copy.shard.GetView().awaits_state);
}

TEST_CASE("a shard that serves the workers alone does not become a copy") {
  CreateVariablesRequest plan = Plan();
  plan.set_awaits_state(false);
  test::Harness primary(plan);
  CHECK(absl::IsAborted(primary.shard.SetView(CopysView()).status()));
  CHECK(primary.shard.GetView().has_variables);
  CHECK(absl::IsFailedPrecondition(primary.shard.CreateVariables(Plan()).status()));
}

TEST_CASE("only a job with copies has copies that await state") {
  test::Harness copy;
  REQUIRE(copy.shard.SetView(CopysView()).ok());
  CreateVariablesRequest plan = Plan();
  plan.mutable_sync()->set_ps_replicas(0);
  CHECK(absl::IsInvalidArgument(copy.shard.CreateVariables(plan).status()));
}

}  // namespace
}  // namespace lockstep::ps
