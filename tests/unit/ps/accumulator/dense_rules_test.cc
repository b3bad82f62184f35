// The rules of the dense accumulator that TensorFlow's tests leave out: who is served when, what
// counts, what an invalid or stale gradient changes.
#include <catch2/catch.hpp>

#include "tests/unit/ps/accumulator/dense_fixture.h"

namespace lockstep::reference {
namespace {

using test::Accumulator;
using test::DenseFixture;
using test::Of;

TEST_CASE("a take in front blocks those behind it that ask for less") {
  DenseFixture f;
  const TakeId first = f.Start(3);
  const TakeId second = f.Start(1);
  f.Apply(1);
  f.Apply(2);
  CHECK_FALSE(f.IsFinished(second));
  f.Apply(3);
  CHECK(f.ResultOf(first)[0] == 2);
  CHECK_FALSE(f.IsFinished(second));
  f.Apply(7, 1);
  CHECK(f.ResultOf(second)[0] == 7);
}

TEST_CASE("the divisor is everything accumulated, not what was required") {
  DenseFixture f;
  for (const float gradient : {1.f, 2.f, 3.f, 4.f, 10.f}) f.Apply(gradient);
  const TakeId take = f.Start(2);
  CHECK(f.ResultOf(take)[0] == 4);
  CHECK(f.CountOf(take) == 5);
  CHECK(f.accumulator.num_accumulated() == 0);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
}

TEST_CASE("lowering the step warns, works, and keeps what was accumulated") {
  DenseFixture f;
  f.accumulator.SetGlobalStep(GlobalStep(5));
  f.Apply(10, 5);
  CHECK(f.accumulator.SetGlobalStep(GlobalStep(2)) == Accumulator::StepChange::kLowered);
  CHECK(f.accumulator.global_step() == GlobalStep(2));
  f.Apply(20, 2);
  CHECK(f.was_accepted);
  f.Apply(99, 1);
  CHECK_FALSE(f.was_accepted);
  CHECK(f.Take(2)[0] == 15);
  CHECK(f.accumulator.global_step() == GlobalStep(3));
}

TEST_CASE("setting the step does not serve a waiting take, the next gradient does") {
  DenseFixture f;
  f.Apply(10);
  const TakeId take = f.Start(2);
  f.accumulator.SetGlobalStep(GlobalStep(1));
  CHECK_FALSE(f.IsFinished(take));
  f.Apply(99, 0);
  CHECK_FALSE(f.was_accepted);
  CHECK_FALSE(f.IsFinished(take));
  f.Apply(30, 1);
  CHECK(f.ResultOf(take)[0] == 20);
}

TEST_CASE("a stale gradient is dropped before anything is validated") {
  DenseFixture f;
  f.accumulator.SetGlobalStep(GlobalStep(3));
  CHECK(f.Apply(Tensor::Zeros(DType::kFloat64, Shape({7, 7})), 2).ok());
  CHECK_FALSE(f.was_accepted);
  CHECK(f.accumulator.num_accumulated() == 0);
  CHECK(f.Apply(Tensor::Zeros(DType::kFloat64, Shape({1})), 3).code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("an invalid gradient changes nothing while others accumulate") {
  DenseFixture f;
  f.Apply(10);
  CHECK_FALSE(f.Apply(Of(Shape({2}), {1, 2})).ok());
  f.Apply(20);
  CHECK(f.accumulator.num_accumulated() == 2);
  CHECK(f.Take(2)[0] == 15);
}

TEST_CASE("gradients from the future are fresh") {
  DenseFixture f;
  f.Apply(10, 0);
  f.Apply(20, 1000000);
  CHECK(f.was_accepted);
  CHECK(f.Take(2)[0] == 15);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
}

TEST_CASE("cancelling a take that is not in front leaves the others in their order") {
  DenseFixture f;
  const TakeId first = f.Start(1);
  const TakeId second = f.Start(1);
  const TakeId third = f.Start(1);
  f.Cancel(second);
  CHECK(f.StatusOf(second).code() == absl::StatusCode::kCancelled);
  CHECK_FALSE(f.IsFinished(first));
  f.Apply(1, 0);
  f.Apply(2, 1);
  CHECK(f.ResultOf(first)[0] == 1);
  CHECK(f.ResultOf(third)[0] == 2);
}

TEST_CASE("cancelling the take in front serves the one behind it") {
  DenseFixture f;
  const TakeId first = f.Start(5);
  const TakeId second = f.Start(2);
  f.Apply(10);
  f.Apply(20);
  CHECK_FALSE(f.IsFinished(second));
  f.Cancel(first);
  CHECK(f.StatusOf(first).code() == absl::StatusCode::kCancelled);
  CHECK(f.ResultOf(second)[0] == 15);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
  // Not waiting any more: nothing happens.
  CHECK(f.accumulator.Cancel(first).empty());
  CHECK(f.accumulator.Cancel(TakeId(1234)).empty());
}

TEST_CASE("a partly known shape pins what it names and the first gradient the rest") {
  DenseFixture f(Reduction::kMean, DType::kFloat32,
                 PartialShape(std::vector<int64_t>{PartialShape::kUnknown, 2}));
  const absl::Status wrong = f.Apply(Tensor::Zeros(DType::kFloat32, Shape({3, 3})));
  CHECK(wrong.message() == "Shape mismatch: expected [?,2], got [3,3]");
  CHECK(f.Apply(Of(Shape({3, 2}), {1, 2, 3, 4, 5, 6})).ok());
  CHECK(f.Apply(Tensor::Zeros(DType::kFloat32, Shape({4, 2}))).message() ==
        "Shape mismatch: expected [3,2], got [4,2]");
}

}  // namespace
}  // namespace lockstep::reference
