#include "worker/ops/synthetic.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "tests/unit/worker/ops/op_check.h"

namespace lockstep::worker {
namespace {

using reference::Array;

// Large enough that two threads share it.
constexpr int64_t kMany = 50001;

// The one number that all elements are; NaN where they differ.
float NumberIn(const Tensor& gradient) {
  const float first = gradient.as<float>()[0];
  for (float value : gradient.as<float>()) {
    if (value != first) return std::nanf("");
  }
  return first;
}

// The numbers of three variables' gradients after one pass with this key.
std::vector<float> Gradients(Op& op, OpRun& run, uint64_t key) {
  run.Forward(op, Mode::kTraining, key);
  run.Backward(op, Array::Random({2, 5}, "weights"));
  std::vector<float> numbers;
  for (const Tensor& gradient : run.variable_gradients) numbers.push_back(NumberIn(gradient));
  return numbers;
}

OpRun RunOfThree(TestOps& ops) {
  return OpRun(ops, {Array::Random({2, 5}, "x")}, {Array({kMany}), Array({1}), Array({kMany})},
               {2, 5});
}

TEST_CASE("a synthetic layer passes its input and the gradient of its output on") {
  TestOps ops(2);
  const std::unique_ptr<Op> op = Made(ops.Make(SyntheticOptions{{.batch = 2}, "s", 5}));
  CheckOp(ops, *op, {Array::Random({2, 5}, "x")}, {Array({kMany})}, 0,
          [](const std::vector<Array>& inputs, const std::vector<Array>&) { return inputs[0]; });
}

TEST_CASE("a synthetic gradient is rewritten in each step, with a number of that step's key") {
  std::set<float> seen;
  std::vector<std::vector<float>> by_threads;
  for (int threads : {1, 2}) {
    TestOps ops(threads);
    const std::unique_ptr<Op> op = Made(ops.Make(SyntheticOptions{{.batch = 2}, "s", 5}));
    OpRun run = RunOfThree(ops);
    by_threads.emplace_back();
    for (uint64_t key : {1, 2, 3}) {
      for (float number : Gradients(*op, run, key)) {
        CHECK((number >= -1 && number < 1));
        seen.insert(number);
        by_threads.back().push_back(number);
      }
    }
  }
  CHECK(seen.size() == 9);
  CHECK(by_threads[0] == by_threads[1]);

  TestOps ops(1);
  const std::unique_ptr<Op> other = Made(ops.Make(SyntheticOptions{{.batch = 2}, "other", 5}));
  OpRun run = RunOfThree(ops);
  CHECK(Gradients(*other, run, 1)[0] != by_threads[0][0]);
}

TEST_CASE("a synthetic gradient is there at the next multiple of its period, not before") {
  constexpr absl::Duration kPeriod = absl::Milliseconds(3);
  TestOps ops(1);
  const std::unique_ptr<Op> op = Made(ops.Make(SyntheticOptions{{.batch = 2}, "s", 5, kPeriod}));
  OpRun run = RunOfThree(ops);
  for (int i = 0; i < 5; ++i) {
    const absl::Duration before = Clock::Real()->Monotonic();
    for (float number : Gradients(*op, run, i)) CHECK_FALSE(std::isnan(number));
    CHECK(absl::Floor(Clock::Real()->Monotonic(), kPeriod) > absl::Floor(before, kPeriod));
  }
}

TEST_CASE("a frozen synthetic layer writes nothing") {
  TestOps ops(1);
  const std::unique_ptr<Op> op = Made(ops.Make(SyntheticOptions{
      {.batch = 2, .variable_gradients = false}, "s", 5, absl::InfiniteDuration()}));
  OpRun run = RunOfThree(ops);
  for (float number : Gradients(*op, run, 1)) CHECK(std::isnan(number));
}

}  // namespace
}  // namespace lockstep::worker
