#include "ps/step/step_machine.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

GradientTurns EveryStep(size_t variables) {
  return GradientTurns(LossTurns(), std::vector<int>(variables, GradientTurns::kEveryStep));
}

HeldGradient From(uint32_t worker, uint64_t push_seq = 1, int64_t stamp = 0) {
  return {WorkerIndex(worker),
          PushSeq(push_seq),
          GlobalStep(stamp),
          {Tensor::Zeros(DType::kFloat32, Shape({1}))}};
}

GrantTerms Requires(uint32_t required, float learning_rate = 0.5f) {
  return {.required = required, .learning_rate = learning_rate};
}

using Order = std::vector<std::pair<uint32_t, uint64_t>>;
Order OrderOf(const TakenVariable& of) {
  Order order;
  for (const HeldGradient& gradient : of.taken.gradients) {
    order.emplace_back(gradient.worker.value(), gradient.push_seq.value());
  }
  return order;
}

StepMachine::Granted Grant(StepMachine* machine, int64_t step, const GrantTerms& terms) {
  const auto granted = machine->Grant(GlobalStep(step), terms);
  REQUIRE(granted.ok());
  return *granted;
}

TEST_CASE("gradients are summed in the order (worker, push_seq), however they arrive") {
  StepMachine machine(EveryStep(1), GlobalStep(0), CountRule::kEveryGradient);
  Grant(&machine, 0, Requires(5));
  machine.Apply(0, From(2, 1));
  machine.Apply(0, From(0, 7));
  machine.Apply(0, From(1, 3));
  machine.Apply(0, From(0, 5));
  CHECK_FALSE(machine.TryTake(0).has_value());
  machine.Apply(0, From(1, 2));
  const auto taken = machine.TryTake(0);
  REQUIRE(taken.has_value());
  CHECK(OrderOf(*taken) == Order{{0, 5}, {0, 7}, {1, 2}, {1, 3}, {2, 1}});
  CHECK(taken->learning_rate == 0.5f);
  CHECK(taken->taken.step == GlobalStep(0));
  CHECK(machine.StepOf(0) == GlobalStep(1));
}

TEST_CASE("a late grant takes everything that is held") {
  StepMachine machine(EveryStep(1), GlobalStep(0), CountRule::kEveryGradient);
  for (uint32_t worker = 0; worker < 3; ++worker) machine.Apply(0, From(worker));
  CHECK(machine.TakeReady().empty());
  Grant(&machine, 0, Requires(2));
  const std::vector<TakenVariable> all_taken = machine.TakeReady();
  REQUIRE(all_taken.size() == 1);
  CHECK(all_taken[0].taken.gradients.size() == 3);
  CHECK(all_taken[0].taken.divisor == 3);
}

TEST_CASE("a frozen variable is never waited for") {
  StepMachine machine(
      GradientTurns(LossTurns(), {GradientTurns::kEveryStep, GradientTurns::kNever}), GlobalStep(5),
      CountRule::kOncePerReplica);
  for (int64_t step = 5; step < 8; ++step) {
    CHECK(machine.IsTaken(1));
    Grant(&machine, step, Requires(1));
    CHECK_FALSE(machine.IsComplete());
    machine.Apply(0, From(0, 1, step));
    const std::vector<TakenVariable> all_taken = machine.TakeReady();
    REQUIRE(all_taken.size() == 1);
    CHECK(all_taken[0].variable == 0);
    machine.Published(0);
    REQUIRE(machine.IsComplete());
    machine.Advance();
  }
}

TEST_CASE("a step closes with the variables of its loss's turn alone") {
  // Two steps of the first loss, one of the second; variable 0 belongs to every step.
  StepMachine machine(GradientTurns(LossTurns({2, 1}), {GradientTurns::kEveryStep, 0, 1}),
                      GlobalStep(1), CountRule::kOncePerReplica);
  for (int64_t step = 1; step < 12; ++step) {
    const size_t trained = step % 3 == 2 ? 2 : 1;
    const size_t other = 3 - trained;
    CAPTURE(step);
    CHECK(machine.IsUntouched());
    CHECK(machine.Expects(trained));
    CHECK_FALSE(machine.Expects(other));
    CHECK(machine.IsTaken(other));
    CHECK(machine.StepOf(trained) == GlobalStep(step));
    Grant(&machine, step, Requires(2));
    // A gradient for a variable of another turn counts as late.
    CHECK(machine.Apply(other, From(0, 1, step)) == PushStatus::kStale);
    for (const uint32_t worker : {0, 1}) {
      CHECK(machine.Apply(trained, From(worker, 1, step)) == PushStatus::kAccepted);
      CHECK(machine.Apply(0, From(worker, 1, step)) == PushStatus::kAccepted);
    }
    CHECK(machine.TakeReady().size() == 2);
    machine.Published(0);
    CHECK_FALSE(machine.IsComplete());
    machine.Published(trained);
    REQUIRE(machine.IsComplete());
    CHECK(machine.IsQuiet());
    machine.Advance();
  }
  CHECK_FALSE(machine.IsEmpty());
}

TEST_CASE("a shard without variables of a turn closes its steps with the grant") {
  StepMachine machine(GradientTurns(LossTurns({1, 1}), {1}), GlobalStep(0),
                      CountRule::kOncePerReplica);
  CHECK_FALSE(machine.IsComplete());
  Grant(&machine, 0, Requires(1));
  CHECK(machine.IsComplete());
  CHECK_FALSE(machine.IsEmpty());
  machine.Advance();
  Grant(&machine, 1, Requires(1));
  CHECK_FALSE(machine.IsComplete());
}

TEST_CASE("variables close independently and the step when all have been published") {
  StepMachine machine(EveryStep(2), GlobalStep(0), CountRule::kOncePerReplica);
  Grant(&machine, 0, Requires(1));
  machine.Apply(1, From(0));
  REQUIRE(machine.TryTake(1).has_value());
  CHECK(machine.IsTaken(1));
  CHECK_FALSE(machine.IsTaken(0));
  machine.Published(1);
  CHECK_FALSE(machine.IsComplete());
  machine.Apply(0, From(1));
  REQUIRE(machine.TryTake(0).has_value());
  CHECK_FALSE(machine.IsComplete());
  machine.Published(0);
  CHECK(machine.IsComplete());
  machine.Advance();
  CHECK(machine.shard_step() == GlobalStep(1));
  CHECK_FALSE(machine.IsComplete());
}

TEST_CASE("a variable does not close twice in a step") {
  StepMachine machine(EveryStep(2), GlobalStep(0), CountRule::kEveryGradient);
  Grant(&machine, 0, Requires(1));
  Grant(&machine, 1, Requires(1));
  machine.Apply(0, From(0));
  REQUIRE(machine.TryTake(0).has_value());
  machine.Apply(0, From(0, 2, 1));
  CHECK_FALSE(machine.TryTake(0).has_value());
  machine.Published(0);
  machine.Apply(1, From(0));
  REQUIRE(machine.TryTake(1).has_value());
  machine.Published(1);
  machine.Advance();
  CHECK(machine.TakeReady().size() == 1);
}

TEST_CASE("a variable is not taken while ranges of it are made early") {
  StepMachine machine(EveryStep(1), GlobalStep(0), CountRule::kOncePerReplica);
  Grant(&machine, 0, Requires(1));
  machine.BeginEarly(0);
  machine.BeginEarly(0);
  machine.Apply(0, From(0));
  CHECK_FALSE(machine.TryTake(0).has_value());
  machine.EndEarly(0);
  CHECK(machine.TakeReady().empty());
  machine.EndEarly(0);
  CHECK(machine.TryTake(0).has_value());
}

TEST_CASE("grants may be given for this step and the next, and again") {
  StepMachine machine(EveryStep(1), GlobalStep(3), CountRule::kOncePerReplica);
  CHECK(Grant(&machine, 2, Requires(1)) == StepMachine::Granted::kOver);
  CHECK(Grant(&machine, 3, Requires(2)) == StepMachine::Granted::kCurrent);
  CHECK(Grant(&machine, 4, Requires(1)) == StepMachine::Granted::kNext);
  CHECK(machine.Grant(GlobalStep(5), Requires(1)).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  CHECK(machine.Grant(GlobalStep(3), Requires(0)).status().code() ==
        absl::StatusCode::kInvalidArgument);
  machine.Apply(0, From(0, 1, 3));
  CHECK(machine.TakeReady().empty());
  CHECK(Grant(&machine, 3, Requires(1, 0.25f)) == StepMachine::Granted::kCurrent);
  const std::vector<TakenVariable> all_taken = machine.TakeReady();
  REQUIRE(all_taken.size() == 1);
  CHECK(all_taken[0].learning_rate == 0.25f);
  machine.Published(0);
  machine.Advance();
  REQUIRE(machine.terms().has_value());
  CHECK(machine.terms()->required == 1);
}

TEST_CASE("what a grant asked to keep stays kept when it is given again") {
  StepMachine machine(EveryStep(1), GlobalStep(0), CountRule::kOncePerReplica);
  GrantTerms keeping = Requires(1);
  keeping.keep_slots = true;
  Grant(&machine, 0, keeping);
  Grant(&machine, 0, Requires(1));
  CHECK(machine.terms()->keep_slots);
  CHECK_FALSE(machine.terms()->keep_values);
}

TEST_CASE("a withdrawn grant takes nothing more, and what was taken stays taken") {
  StepMachine machine(EveryStep(2), GlobalStep(0), CountRule::kOncePerReplica);
  Grant(&machine, 0, Requires(1));
  machine.Apply(0, From(0));
  REQUIRE(machine.TryTake(0).has_value());
  machine.Revoke();
  machine.Published(0);
  machine.Apply(1, From(0));
  CHECK_FALSE(machine.TryTake(1).has_value());
  Grant(&machine, 0, Requires(1));
  const std::vector<TakenVariable> all_taken = machine.TakeReady();
  REQUIRE(all_taken.size() == 1);
  CHECK(all_taken[0].variable == 1);
  machine.Published(1);
  CHECK(machine.IsComplete());
}

TEST_CASE("a gradient from the future counts for the step at hand") {
  StepMachine machine(EveryStep(1), GlobalStep(0), CountRule::kOncePerReplica);
  Grant(&machine, 0, Requires(2));
  machine.Apply(0, From(0, 1, 0));
  machine.Apply(0, From(1, 9, 9));
  const auto taken = machine.TryTake(0);
  REQUIRE(taken.has_value());
  CHECK(taken->taken.gradients.size() == 2);
}

TEST_CASE("a shard without variables closes as soon as it is granted") {
  StepMachine machine(EveryStep(0), GlobalStep(0), CountRule::kOncePerReplica);
  CHECK_FALSE(machine.IsComplete());
  Grant(&machine, 0, Requires(2));
  CHECK(machine.IsComplete());
  machine.Advance();
  CHECK(machine.shard_step() == GlobalStep(1));
}

TEST_CASE("a machine that begins anew at another step waits for what that step gets, ungranted") {
  StepMachine machine(GradientTurns(LossTurns({1, 1}), {0, 1, GradientTurns::kEveryStep}),
                      GlobalStep(0), CountRule::kOncePerReplica);
  Grant(&machine, 0, Requires(1));
  machine.RestartAt(GlobalStep(7));
  CHECK(machine.shard_step() == GlobalStep(7));
  CHECK_FALSE(machine.terms().has_value());
  CHECK(machine.num_open() == 2);
  CHECK_FALSE(machine.Expects(0));
  CHECK(machine.IsTaken(0));
  CHECK(machine.StepOf(1) == GlobalStep(7));
  Grant(&machine, 7, Requires(1));
  for (const size_t variable : {1, 2}) {
    machine.Apply(variable, From(0, 1, 7));
    REQUIRE(machine.TryTake(variable).has_value());
    machine.Published(variable);
  }
  REQUIRE(machine.IsComplete());
  machine.Advance();
  CHECK(machine.Expects(0));
}

}  // namespace
}  // namespace lockstep::ps
