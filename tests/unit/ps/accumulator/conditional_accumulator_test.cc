// The rules that only the parameter server has; TensorFlow's are in the tests beside this one,
// which ask the same class.
#include "ps/accumulator/conditional_accumulator.h"

#include <catch2/catch.hpp>
#include <utility>

namespace lockstep::ps {
namespace {

HeldGradient From(uint32_t worker, uint64_t push_seq = 1, int64_t local_step = 0) {
  return {WorkerIndex(worker),
          PushSeq(push_seq),
          GlobalStep(local_step),
          {Tensor::Zeros(DType::kFloat32, Shape({1}))}};
}

using Order = std::vector<std::pair<uint32_t, uint64_t>>;
Order OrderOf(const TakenGradients& taken) {
  Order order;
  for (const HeldGradient& held : taken.gradients) {
    order.emplace_back(held.worker.value(), held.push_seq.value());
  }
  return order;
}

TEST_CASE("gradients are summed in the order (worker, push_seq), however they arrive") {
  ConditionalAccumulator accumulator(CountRule::kEveryGradient, GlobalStep(0));
  for (const auto& [worker, push_seq] : Order{{2, 1}, {0, 7}, {1, 3}, {0, 5}}) {
    CHECK(accumulator.Apply(From(worker, push_seq)) == PushStatus::kAccepted);
  }
  CHECK_FALSE(accumulator.Take(5).has_value());
  accumulator.Apply(From(1, 2));
  const auto taken = accumulator.Take(5);
  REQUIRE(taken.has_value());
  CHECK(OrderOf(*taken) == Order{{0, 5}, {0, 7}, {1, 2}, {1, 3}, {2, 1}});
  CHECK(taken->step == GlobalStep(0));
  CHECK(taken->divisor == 5);
  CHECK(accumulator.global_step() == GlobalStep(1));
  CHECK(accumulator.num_accumulated() == 0);
}

TEST_CASE("a stale gradient is left to the caller") {
  ConditionalAccumulator accumulator(CountRule::kOncePerReplica, GlobalStep(3));
  HeldGradient old = From(0, 1, 2);
  CHECK(accumulator.Apply(std::move(old)) == PushStatus::kStale);
  CHECK(old.gradient.value.num_elements() == 1);
  CHECK(accumulator.num_accumulated() == 0);
}

TEST_CASE("a replica counts once per step under one rule and any number of times otherwise") {
  ConditionalAccumulator once(CountRule::kOncePerReplica, GlobalStep(0));
  once.Apply(From(4));
  CHECK(once.HasCounted(WorkerIndex(4)));
  CHECK_FALSE(once.HasCounted(WorkerIndex(5)));
  REQUIRE(once.Find(WorkerIndex(4)) != nullptr);
  CHECK(once.Find(WorkerIndex(3)) == nullptr);
  REQUIRE(once.Take(1).has_value());
  CHECK_FALSE(once.HasCounted(WorkerIndex(4)));

  ConditionalAccumulator every(CountRule::kEveryGradient, GlobalStep(0));
  every.Apply(From(4));
  CHECK_FALSE(every.HasCounted(WorkerIndex(4)));
}

TEST_CASE("a replica that is removed can be counted again") {
  ConditionalAccumulator accumulator(CountRule::kOncePerReplica, GlobalStep(0));
  accumulator.Apply(From(0));
  accumulator.Apply(From(1));
  CHECK_FALSE(accumulator.Remove(WorkerIndex(2)).has_value());
  const std::optional<HeldGradient> removed = accumulator.Remove(WorkerIndex(0));
  REQUIRE(removed.has_value());
  CHECK(removed->worker == WorkerIndex(0));
  CHECK_FALSE(accumulator.Take(2).has_value());
  CHECK(accumulator.Apply(From(0, 9)) == PushStatus::kAccepted);
  CHECK(OrderOf(*accumulator.Take(2)) == Order{{0, 9}, {1, 1}});
}

TEST_CASE("one by one, each gradient is a step, in the order of arrival") {
  ConditionalAccumulator accumulator(CountRule::kOneByOne, GlobalStep(0));
  accumulator.Apply(From(1, 1));
  accumulator.Apply(From(0, 1));
  CHECK(OrderOf(*accumulator.Take(1)) == Order{{1, 1}});
  CHECK(accumulator.global_step() == GlobalStep(1));
  CHECK(accumulator.num_accumulated() == 1);
  CHECK(OrderOf(*accumulator.Take(1)) == Order{{0, 1}});
  CHECK_FALSE(accumulator.Take(1).has_value());
}

TEST_CASE("one by one, those that wait count as taken before the next") {
  CountRule rule = CountRule::kOneByOne;
  rule.max_staleness = 1;
  ConditionalAccumulator accumulator(rule, GlobalStep(5));
  const auto is_stale = [&](int64_t step) { return accumulator.IsStale(GlobalStep(step)); };
  CHECK(is_stale(3));
  CHECK_FALSE(is_stale(4));
  accumulator.Apply(From(0, 1, 4));
  CHECK(is_stale(4));
  accumulator.Apply(From(1, 1, 5));
  CHECK(is_stale(5));
  CHECK_FALSE(is_stale(6));
}

TEST_CASE("one by one, no more are held than there are steps to the end") {
  CountRule rule = CountRule::kOneByOne;
  rule.end = GlobalStep(2);
  ConditionalAccumulator accumulator(rule, GlobalStep(0));
  CHECK(accumulator.Apply(From(0)) == PushStatus::kAccepted);
  CHECK(accumulator.Apply(From(1)) == PushStatus::kAccepted);
  CHECK(accumulator.Apply(From(2)) == PushStatus::kStale);
}

}  // namespace
}  // namespace lockstep::ps
