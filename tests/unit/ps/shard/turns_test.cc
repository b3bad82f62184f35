// Variables of several losses that take turns: a step closes with those of its turn alone.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/committed.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::kCommand;
using test::PlacementOf;
using test::PlanOf;

constexpr uint32_t kMade = 0;   // of the generator, with momentum: steps 0, 1, 3, 4, ...
constexpr uint32_t kJudge = 1;  // of the discriminator, with Adam: steps 2, 5, ...
constexpr uint32_t kTotal = 2;  // a statistic of every step
constexpr int64_t kCycle = 3;

OptimizerDef Momentum() {
  OptimizerDef optimizer;
  optimizer.mutable_momentum()->set_momentum(0.9f);
  return optimizer;
}

OptimizerDef Adam() {
  OptimizerDef optimizer;
  optimizer.mutable_adam()->set_beta1(0.5f);
  return optimizer;
}

CreateVariablesRequest Adversaries() {
  CreateVariablesRequest plan = PlanOf(
      PlacementOf({{"g/w", {2}, 0, true, 4}, {"d/w", {2}, 0, true, 4}, {"total", {1}, 0, false}}),
      1, 1);
  plan.clear_optimizer();
  plan.mutable_placement()->add_turns(2);
  plan.mutable_placement()->add_turns(1);
  plan.mutable_placement()->mutable_variables(kMade)->set_loss(1);
  plan.mutable_placement()->mutable_variables(kJudge)->set_loss(2);
  LossDef* generator = plan.add_losses();
  generator->set_name("generator");
  *generator->mutable_optimizer() = Momentum();
  LossDef* discriminator = plan.add_losses();
  discriminator->set_name("discriminator");
  *discriminator->mutable_optimizer() = Adam();
  return plan;
}

CreateVariablesRequest Alone(const OptimizerDef& optimizer) {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {2}, 0, true, 4}}), 1, 1);
  *plan.mutable_optimizer() = optimizer;
  return plan;
}

uint32_t TrainedIn(int64_t step) { return step % kCycle == 2 ? kJudge : kMade; }

std::vector<float> GradientOf(int64_t step) {
  return {static_cast<float>(step) + 0.25f, -1.5f * static_cast<float>(step + 1)};
}

// The shard's own step; the other variable of the turn's loss gets none.
test::Reply<ClosedStep> Step(Harness* harness, int64_t step, bool keep_slots = false) {
  const auto closed = harness->Grant({.command = kCommand,
                                      .step = GlobalStep(step),
                                      .learning_rate = 0.125f,
                                      .keep_slots = keep_slots});
  const uint64_t push_seq = static_cast<uint64_t>(step) + 1;
  CHECK(harness->Push(0, push_seq, step, kTotal, {1}) == PushStatus::kAccepted);
  CHECK(closed.IsParked());
  CHECK(harness->Push(0, push_seq, step, TrainedIn(step), GradientOf(step)) ==
        PushStatus::kAccepted);
  return closed;
}

// One variable on a shard of its own that makes the steps of its turns alone.
class Reference {
 public:
  explicit Reference(const OptimizerDef& optimizer) : harness_(Alone(optimizer)) {}
  void Step(int64_t step) {
    harness_.Grant(own_step_, 1, 0.125f);
    harness_.Push(0, static_cast<uint64_t>(own_step_) + 1, own_step_, 0, GradientOf(step));
    ++own_step_;
  }
  std::vector<float> Value() { return harness_.Read(own_step_, 0); }

 private:
  Harness harness_;
  int64_t own_step_ = 0;
};

TEST_CASE("each loss's optimizer, slots and powers advance in its own turns alone") {
  Harness harness(Adversaries());
  Reference made(Momentum());
  Reference judge(Adam());
  for (int64_t step = 0; step < 12; ++step) {
    CAPTURE(step);
    const auto next = harness.Pull(0, step + 1, {{VariableId(kMade)}, {VariableId(kJudge)}});
    CHECK(next.IsParked());
    const auto closed = Step(&harness, step);
    REQUIRE_FALSE(closed.IsParked());
    (TrainedIn(step) == kMade ? made : judge).Step(step);
    REQUIRE_FALSE(next.IsParked());
    CHECK(next->version == GlobalStep(step + 1));
    CHECK(test::ValuesOf(next->pieces[0]) == made.Value());
    CHECK(test::ValuesOf(next->pieces[1]) == judge.Value());
  }
}

TEST_CASE("rows that the steps of other turns leave alone are read in each version") {
  CreateVariablesRequest plan = Adversaries();
  VariableSpec* table = plan.mutable_placement()->mutable_variables(kMade);
  table->set_sparse(true);
  table->add_dims(1);
  Harness harness(plan);
  Reference made(Momentum());  // each step has a gradient for each row
  std::vector<float> before = {4, 4};
  for (int64_t step = 0; step < 9; ++step) {
    CAPTURE(step);
    const auto closed = harness.Grant(step, 1, 0.125f);
    const uint64_t push_seq = static_cast<uint64_t>(step) + 1;
    CHECK(harness.Push(0, push_seq, step, kTotal, {1}) == PushStatus::kAccepted);
    CHECK(harness.Read(step, kMade) == before);
    if (TrainedIn(step) == kJudge) {
      harness.Push(0, push_seq, step, kJudge, GradientOf(step));
    } else {
      test::Message rows(test::IdentityOf(0), push_seq, step);
      rows.Rows(kMade, Shape({2, 1}), {0, 1}, GradientOf(step));
      REQUIRE(harness.shard.Push(rows.Ready()).ok());
      made.Step(step);
    }
    REQUIRE_FALSE(closed.IsParked());
    CHECK(harness.Read(step, kMade) == before);
    before = harness.Read(step + 1, kMade);
    CHECK(before == made.Value());
    const auto second =
        harness.Pull(0, step + 1, {PullPiece{.variable = VariableId(kMade), .rows = {1}}});
    REQUIRE_FALSE(second.IsParked());
    CHECK(test::ValuesOf(second->pieces[0]) == std::vector<float>{before[1]});
  }
}

TEST_CASE("a gradient for a variable of another turn changes nothing") {
  Harness harness(Adversaries());
  const auto closed = harness.Grant(0, 1);
  CHECK(harness.Push(0, 1, 0, kJudge, {1, 1}) == PushStatus::kStale);
  CHECK(harness.Push(0, 1, 0, kMade, {1, 1}) == PushStatus::kAccepted);
  CHECK(harness.Push(0, 1, 0, kTotal, {1}) == PushStatus::kAccepted);
  REQUIRE_FALSE(closed.IsParked());
  CHECK(harness.Read(1, kJudge) == std::vector<float>{4, 4});
}

TEST_CASE("a shard that is short of memory closes the steps of every turn") {
  Harness harness(Adversaries(), ShardOptions{.held_bytes_budget = 8});
  for (int64_t step = 0; step < 9; ++step) {
    CAPTURE(step);
    CHECK_FALSE(Step(&harness, step).IsParked());
  }
}

TEST_CASE("a checkpoint within a turn has each loss's numbers, and a job goes on from it") {
  const lockstep::test::TemporaryFolder root;
  Harness harness(Adversaries());
  for (int64_t step = 0; step < 3; ++step) REQUIRE_FALSE(Step(&harness, step).IsParked());
  REQUIRE_FALSE(Step(&harness, 3, /*keep_slots=*/true).IsParked());
  const std::string folder = CheckpointFolder(root.path(), 4);
  const auto saved = harness.shard.Save(kCommand, GlobalStep(4), folder);
  REQUIRE(saved.ok());
  std::vector<std::string> names;
  for (const TensorRecord& tensor : saved->tensors) names.push_back(tensor.name);
  CHECK(names == std::vector<std::string>{"d/w", "d/w/m", "d/w/v", "g/w", "g/w/momentum",
                                          "optimizer/discriminator/beta1_power",
                                          "optimizer/discriminator/beta2_power", "total"});
  test::Committed(root.path(), 4, "generator: momentum, discriminator: adam", {*saved});

  CreateVariablesRequest plan = Adversaries();
  plan.set_restore_from(folder);
  plan.set_start_step(4);
  Harness restored(plan);
  for (int64_t step = 4; step < 12; ++step) {
    CAPTURE(step);
    REQUIRE_FALSE(Step(&harness, step).IsParked());
    REQUIRE_FALSE(Step(&restored, step).IsParked());
    for (const uint32_t variable : {kMade, kJudge}) {
      CHECK(restored.Read(step + 1, variable) == harness.Read(step + 1, variable));
    }
  }
}

TEST_CASE("a version that the steps since have left alone is saved, but not of the first shard") {
  const uint32_t number = GENERATE(0u, 1u);
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"d/w", {2}, number, true, 4}}, 2), 1, 1);
  plan.clear_optimizer();
  plan.mutable_placement()->add_turns(2);
  plan.mutable_placement()->add_turns(1);
  plan.mutable_placement()->mutable_variables(0)->set_loss(2);
  *plan.add_losses()->mutable_optimizer() = Momentum();
  *plan.add_losses()->mutable_optimizer() = Adam();
  plan.mutable_losses(0)->set_name("generator");
  plan.mutable_losses(1)->set_name("discriminator");
  Harness harness;
  REQUIRE(harness.shard.SetView(test::ViewOf(1, number)).ok());
  REQUIRE(harness.shard.CreateVariables(plan).ok());
  const lockstep::test::TemporaryFolder root;
  const auto save = [&](int64_t version) {
    return harness.shard.Save(kCommand, GlobalStep(version), root.Path("checkpoint")).status();
  };
  // Steps 0 and 1 are of the generator; 2 waits.
  for (const int64_t step : {0, 1}) CHECK_FALSE(harness.Grant(step, 1).IsParked());
  CHECK(save(2).ok());
  const bool is_first = number == 0;
  for (const int64_t version : {0, 1}) {
    CHECK(absl::IsFailedPrecondition(save(version)) == is_first);
  }
  const auto granted = harness.Grant(2, 1);
  CHECK(absl::IsFailedPrecondition(save(1)));
  harness.Push(0, 3, 2, 0, {1, 1});
  REQUIRE_FALSE(granted.IsParked());
  CHECK(save(3).ok());
  CHECK(absl::IsFailedPrecondition(save(2)));
}

TEST_CASE("losses and turns that do not fit are refused") {
  const auto error = [](const auto& change) {
    CreateVariablesRequest plan = Adversaries();
    change(&plan);
    Shard shard(ShardOptions{});
    REQUIRE(shard.SetView(test::ViewOf(1)).ok());
    const absl::Status status = shard.CreateVariables(plan).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  using Plan = CreateVariablesRequest;
  using Catch::Matchers::Contains;
  CHECK_THAT(error([](Plan* plan) { plan->clear_losses(); }), Contains("losses: expected 2"));
  CHECK_THAT(error([](Plan* plan) { plan->mutable_placement()->set_turns(1, 0); }),
             Contains("turns: expected at least 1 step"));
  CHECK_THAT(error([](Plan* plan) { plan->mutable_placement()->set_turns(1, INT64_MAX); }),
             Contains("turns: expected at least 1 step"));
  CHECK_THAT(
      error([](Plan* plan) { plan->mutable_placement()->mutable_variables(0)->set_loss(3); }),
      Contains("variable g/w is of loss 3, but 2 take turns"));
  CHECK_THAT(error([](Plan* plan) { plan->set_asynchronous(true); }),
             Contains("losses: expected none in an asynchronous job"));
}

}  // namespace
}  // namespace lockstep::ps
