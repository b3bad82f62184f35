// TensorFlow's own tests of the dense conditional accumulator (conditional_accumulator_test.py), by
// their names.
#include "tests/reference/dense_accumulator.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "tests/unit/ps/accumulator/dense_fixture.h"

namespace lockstep::reference {
namespace {

using test::Accumulator;
using test::DenseFixture;
using test::Of;

const Shape kMatrix({3, 2});
const std::vector<float> kOnes = {1, 2, 3, 4, 5, 6};
const std::vector<float> kTens = {10, 20, 30, 40, 50, 60};
const std::vector<float> kMean = {5.5f, 11, 16.5f, 22, 27.5f, 33};

TEST_CASE("testAccumulatorSizeEmpty") { CHECK(DenseFixture().accumulator.num_accumulated() == 0); }

TEST_CASE("testAccumulatorSetGlobalStep") {
  DenseFixture f;
  CHECK(f.accumulator.SetGlobalStep(GlobalStep(1)) == Accumulator::StepChange::kSet);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
}

TEST_CASE("testAccumulatorApplyGradFloat32") {
  DenseFixture f;
  f.Apply(10);
  CHECK(f.was_accepted);
}

TEST_CASE("testDtypes") {
  const DType dtype = GENERATE(DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16);
  DenseFixture f(Reduction::kMean, dtype);
  for (int i = 0; i < 10; ++i) f.Apply(static_cast<float>(i));
  CHECK(f.Take(1) == std::vector<float>{4.5f});
}

TEST_CASE("testAccumulatorMultipleAccumulators") {
  std::vector<std::unique_ptr<DenseFixture>> fixtures;
  for (const DType dtype : {DType::kFloat16, DType::kFloat16, DType::kFloat32, DType::kFloat32}) {
    fixtures.push_back(std::make_unique<DenseFixture>(Reduction::kMean, dtype));
  }
  for (int i = 0; i < 4; ++i) fixtures[i]->Apply(static_cast<float>(i + 10));
  for (int i = 0; i < 4; ++i) CHECK(fixtures[i]->Take(1)[0] == static_cast<float>(i + 10));
}

TEST_CASE("testAccumulatorApplyAndTakeGradWithShape") {
  DenseFixture f(Reduction::kMean, DType::kFloat32, PartialShape(kMatrix));
  REQUIRE(f.Apply(Of(kMatrix, kOnes)).ok());
  REQUIRE(f.Apply(Of(kMatrix, kTens)).ok());
  CHECK(f.Take(1) == kMean);
}

TEST_CASE("testAccumulatorApplyGradWithWrongShape") {
  DenseFixture f(Reduction::kMean, DType::kFloat32, PartialShape(kMatrix));
  for (const Shape& wrong : {Shape({2, 2}), Shape({3, 1}), Shape({6}), Shape()}) {
    const absl::Status status = f.Apply(Tensor::Zeros(DType::kFloat32, wrong));
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(status.message() == "Shape mismatch: expected [3,2], got " + wrong.ToString());
  }
  CHECK(f.accumulator.num_accumulated() == 0);
}

TEST_CASE("testAccumulatorDynamicShape") {
  DenseFixture f(Reduction::kMean, DType::kFloat32, PartialShape());
  REQUIRE(f.Apply(Of(kMatrix, kOnes)).ok());
  REQUIRE(f.Apply(Of(kMatrix, kTens)).ok());
  CHECK(f.Take(1) == kMean);
}

TEST_CASE("testAccumulatorWrongDynamicShape") {
  DenseFixture f(Reduction::kMean, DType::kFloat32, PartialShape());
  REQUIRE(f.Apply(Of(kMatrix, kOnes)).ok());
  for (const Shape& wrong : {Shape({2, 2}), Shape({3, 1})}) {
    CHECK(f.Apply(Tensor::Zeros(DType::kFloat32, wrong)).code() ==
          absl::StatusCode::kInvalidArgument);
  }
  CHECK(f.accumulator.num_accumulated() == 1);
  CHECK(f.Take(1) == kOnes);
  // The shape was pinned by the first gradient only until the take.
  CHECK(f.Apply(Tensor::Zeros(DType::kFloat32, Shape({2, 2})), 1).ok());
}

TEST_CASE("testAccumulatorSizeAfterApplyGrad") {
  DenseFixture f;
  CHECK(f.accumulator.num_accumulated() == 0);
  f.Apply(10);
  CHECK(f.accumulator.num_accumulated() == 1);
  f.Apply(10);
  CHECK(f.accumulator.num_accumulated() == 2);
}

TEST_CASE("testAccumulatorSizeAfterApplyGradAndTakeGrad") {
  DenseFixture f;
  f.Apply(10);
  f.Apply(10);
  CHECK(f.accumulator.num_accumulated() == 2);
  f.Take(2);
  CHECK(f.accumulator.num_accumulated() == 0);
  for (int i = 0; i < 4; ++i) f.Apply(10, 1);
  CHECK(f.accumulator.num_accumulated() == 4);
  f.Take(2);
  CHECK(f.accumulator.num_accumulated() == 0);
}

TEST_CASE("testAccumulatorTakeGradMean") {
  DenseFixture f;
  f.Apply(10);
  f.Apply(20);
  CHECK(f.Take(1)[0] == 15);
  f.Apply(10, 1);
  f.Apply(20, 1);
  CHECK(f.Take(1)[0] == 15);
}

TEST_CASE("testAccumulatorTakeGradSum") {
  DenseFixture f(Reduction::kSum);
  f.Apply(10);
  f.Apply(20);
  CHECK(f.Take(1)[0] == 30);
  f.Apply(10, 1);
  f.Apply(20, 1);
  CHECK(f.Take(1)[0] == 30);
}

TEST_CASE("testAccumulatorInvalidTakeGrad") {
  DenseFixture f;
  f.Apply(10);
  f.Apply(20);
  for (const int required : {-1, 0}) {
    const auto taken = f.accumulator.Take(TakeId(99), required);
    CHECK(taken.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(taken.status().message(), "num_required must be positive"));
  }
  CHECK(f.accumulator.num_waiting() == 0);
  CHECK(f.accumulator.num_accumulated() == 2);
}

TEST_CASE("testAccumulatorRepeatedTakeGradMean") {
  DenseFixture f;
  f.Apply(10);
  f.Apply(20);
  CHECK(f.Take(1)[0] == 15);
  f.Apply(20, 1);
  f.Apply(30, 1);
  CHECK(f.Take(1)[0] == 25);
}

TEST_CASE("testAccumulatorRepeatedTakeGradSum") {
  DenseFixture f(Reduction::kSum);
  f.Apply(10);
  f.Apply(20);
  CHECK(f.Take(1)[0] == 30);
  f.Apply(20, 1);
  f.Apply(30, 1);
  CHECK(f.Take(1)[0] == 50);
}

TEST_CASE("testAccumulatorIncrementGlobalStep") {
  DenseFixture f;
  for (int64_t step = 0; step < 3; ++step) {
    CHECK(f.accumulator.SetGlobalStep(GlobalStep(step + 1)) == Accumulator::StepChange::kSet);
    CHECK(f.accumulator.global_step() == GlobalStep(step + 1));
  }
}

TEST_CASE("testAccumulatorSetGlobalStepPreventsAccumulation") {
  DenseFixture f;
  const std::vector<float> expected = {1002, 1002.5f, 1003, 1003.5f, 1004};
  for (int64_t step = 1000; step < 1005; ++step) {
    f.accumulator.SetGlobalStep(GlobalStep(step));
    for (int64_t stamp = 1000; stamp < 1005; ++stamp) f.Apply(static_cast<float>(stamp), stamp);
    CHECK(f.Take(1)[0] == expected[step - 1000]);
  }
}

TEST_CASE("testParallelApplyGrad") {
  // The class is sequential; the order of arrival is what threads could vary.
  std::vector<float> gradients = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  const int rotation = GENERATE(0, 3, 7);
  std::rotate(gradients.begin(), gradients.begin() + rotation, gradients.end());
  DenseFixture f;
  for (const float gradient : gradients) f.Apply(gradient);
  CHECK(f.Take(1)[0] == 55);
}

TEST_CASE("testParallelTakeGrad") {
  DenseFixture f;
  std::vector<TakeId> takes;
  for (int i = 0; i < 10; ++i) takes.push_back(f.Start(1));
  CHECK(f.accumulator.num_waiting() == 10);
  for (int64_t e = 0; e < 10; ++e) f.Apply(static_cast<float>(e), e);
  for (int i = 0; i < 10; ++i) CHECK(f.ResultOf(takes[i])[0] == static_cast<float>(i));
}

TEST_CASE("testAccumulatorApplyAndBlockingTake") {
  DenseFixture f;
  const TakeId take = f.Start(3);
  f.Apply(10);
  f.Apply(20);
  CHECK_FALSE(f.IsFinished(take));
  f.Apply(30);
  CHECK(f.ResultOf(take)[0] == 20);
}

TEST_CASE("testAccumulatorCancel") {
  DenseFixture f;
  const TakeId take = f.Start(1);
  f.Cancel(take);
  CHECK(f.StatusOf(take).code() == absl::StatusCode::kCancelled);
  CHECK(absl::StrContains(f.StatusOf(take).message(), "was cancelled"));
  CHECK(f.accumulator.global_step() == GlobalStep(0));
  f.Apply(10);
  CHECK(f.accumulator.num_accumulated() == 1);
}

}  // namespace
}  // namespace lockstep::reference
