// TensorFlow's own tests of the sparse conditional accumulator
// (sparse_conditional_accumulator_test.py), by their names. testConstructor and its kin ask about
// graph nodes; what remains of them here is which reductions and shapes there are.
#include "tests/reference/sparse_accumulator.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "absl/strings/match.h"
#include "tests/unit/ps/accumulator/sparse_fixture.h"

namespace lockstep::reference {
namespace {

using test::Indices;
using test::Of;
using test::PushOf;
using test::Rows;
using test::SparseFixture;
using test::SparsePush;

constexpr int64_t kUnknown = PartialShape::kUnknown;
using Dims = std::vector<int64_t>;

PartialShape Declared(Dims dims) { return PartialShape(std::move(dims)); }

SparsePush WithShape(SparsePush push, Dims shape) {
  push.dense_shape = std::move(shape);
  return push;
}

TEST_CASE("testAccumulatorSizeEmpty") {
  CHECK(SparseFixture(Declared({3, 3})).accumulator.num_accumulated() == 0);
}

TEST_CASE("testAccumulatorSetGlobalStep") {
  SparseFixture f(Declared({3, 3}));
  CHECK(f.accumulator.SetGlobalStep(GlobalStep(1)) == SparseFixture::Accumulator::StepChange::kSet);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
}

TEST_CASE("testAccumulatorApplyGradFloat32") {
  SparseFixture f(Declared({3, 3}));
  f.Apply(Rows{{0, {0, 0, 1}}, {2, {3, 0, 4}}});
  CHECK(f.accumulator.num_accumulated() == 1);
}

TEST_CASE("testDtypes") {
  const int i = GENERATE(0, 1, 2);
  const DType dtype = std::vector{DType::kFloat16, DType::kFloat32, DType::kFloat64}[i];
  SparseFixture f(Declared({3, 3, 3}), Reduction::kMean, dtype);
  for (const float value : {1.f, 2.f}) {
    std::vector<float> slice(9, 0);
    slice[i * 3 + i] = value;
    REQUIRE(f.Apply(PushOf({i}, Shape({1, 3, 3}), slice, dtype)).ok());
  }
  const Rows taken = f.Take(1);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].first == i);
  std::vector<float> expected(9, 0);
  expected[i * 3 + i] = 1.5;
  CHECK(taken[0].second == expected);
}

TEST_CASE("testAccumulatorMultipleAccumulators") {
  std::vector<std::unique_ptr<SparseFixture>> fixtures;
  for (const DType dtype : {DType::kFloat16, DType::kFloat16, DType::kFloat32, DType::kFloat32}) {
    fixtures.push_back(std::make_unique<SparseFixture>(Declared({2, 2}), Reduction::kMean, dtype));
  }
  const auto one_hot = [](int i) {
    std::vector<float> slice(2, 0);
    slice[i % 2] = 1;
    return Rows{{i / 2, slice}};
  };
  for (int i = 0; i < 4; ++i) fixtures[i]->Apply(one_hot(i));
  for (int i = 0; i < 4; ++i) CHECK(fixtures[i]->Take(1) == one_hot(i));
}

TEST_CASE("testAccumulatorTakeGradMean") {
  SparseFixture f(Declared({}));
  f.Apply(Rows{{0, {1, 0}}, {1, {0, 2}}});
  REQUIRE(f.Apply(WithShape(PushOf(Rows{{0, {0, 1}}, {2, {3, 0}}}), {3, 2})).ok());
  const TakeId take = f.Start(1);
  CHECK(f.RowsOf(take) == Rows{{0, {.5, .5}}, {1, {0, 2}}, {2, {3, 0}}});
  CHECK(f.ResultOf(take).dense_shape == Dims{-1, 2});
}

TEST_CASE("testAccumulatorTakeGradSum") {
  SparseFixture f(Declared({}), Reduction::kSum);
  f.Apply(Rows{{0, {1, 0}}, {1, {0, 2}}});
  REQUIRE(f.Apply(WithShape(PushOf(Rows{{0, {0, 1}}, {2, {3, 0}}}), {3, 2})).ok());
  const TakeId take = f.Start(1);
  CHECK(f.RowsOf(take) == Rows{{0, {1, 1}}, {1, {0, 2}}, {2, {3, 0}}});
  CHECK(f.ResultOf(take).dense_shape == Dims{-1, 2});
}

TEST_CASE("testAccumulatorRepeatedTakeGradMean") {
  SparseFixture f(Declared({}));
  f.Apply(Rows{{0, {1, 0}}, {1, {0, 2}}});
  f.Apply(Rows{{0, {0, 1}}, {2, {3, 0}}});
  CHECK(f.Take(1) == Rows{{0, {.5, .5}}, {1, {0, 2}}, {2, {3, 0}}});
  f.Apply(Rows{{0, {10, 0}}, {1, {0, 20}}}, 1);
  f.Apply(Rows{{0, {0, 10}}, {2, {30, 0}}}, 1);
  const TakeId take = f.Start(1);
  CHECK(f.RowsOf(take) == Rows{{0, {5, 5}}, {1, {0, 20}}, {2, {30, 0}}});
  CHECK(f.ResultOf(take).dense_shape == Dims{-1, 2});
}

TEST_CASE("testAccumulatorRepeatedTakeGradSum") {
  SparseFixture f(Declared({}), Reduction::kSum);
  f.Apply(Rows{{0, {1, 0}}, {1, {0, 2}}});
  f.Apply(Rows{{0, {0, 1}}, {2, {3, 0}}});
  CHECK(f.Take(1) == Rows{{0, {1, 1}}, {1, {0, 2}}, {2, {3, 0}}});
  f.Apply(Rows{{0, {10, 0}}, {1, {0, 20}}}, 1);
  f.Apply(Rows{{0, {0, 10}}, {2, {30, 0}}}, 1);
  CHECK(f.Take(1) == Rows{{0, {10, 10}}, {1, {0, 20}}, {2, {30, 0}}});
}

TEST_CASE("testParallelApplyGradMean and testParallelApplyGradSum") {
  // The class is sequential; the order of arrival is what threads could vary.
  const Reduction reduction = GENERATE(Reduction::kMean, Reduction::kSum);
  std::vector<float> elements = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  std::rotate(elements.begin(), elements.begin() + GENERATE(0, 4, 9), elements.end());
  SparseFixture f(Declared({2, 2}), reduction);
  for (const float x : elements) f.Apply(Rows{{0, {x, 0}}, {1, {0, x}}});
  const float expected = reduction == Reduction::kMean ? 55 : 550;
  CHECK(f.Take(1) == Rows{{0, {expected, 0}}, {1, {0, expected}}});
}

TEST_CASE("testParallelTakeGrad") {
  SparseFixture f(Declared({2, 2}));
  std::vector<TakeId> takes;
  for (int i = 0; i < 10; ++i) takes.push_back(f.Start(1));
  for (int e = 1; e <= 10; ++e) f.Apply(Rows{{1, {static_cast<float>(e), 0}}}, e - 1);
  for (int i = 0; i < 10; ++i) {
    CHECK(f.RowsOf(takes[i]) == Rows{{1, {static_cast<float>(i + 1), 0}}});
  }
}

TEST_CASE("testAccumulatorApplyAndBlockingTake") {
  SparseFixture f(Declared({2, 2}));
  const TakeId take = f.Start(3);
  for (const float x : {10.f, 20.f, 30.f}) {
    CHECK_FALSE(f.IsFinished(take));
    f.Apply(Rows{{0, {0, x}}});
  }
  CHECK(f.RowsOf(take) == Rows{{0, {0, 20}}});
}

TEST_CASE("testAccumulatorCancel") {
  SparseFixture f(Declared({1, 2, 3}));
  const TakeId take = f.Start(1);
  f.Cancel(take);
  CHECK(absl::IsCancelled(f.StatusOf(take)));
  CHECK(absl::StrContains(f.StatusOf(take).message(), "was cancelled"));
}

TEST_CASE("testNonVectorIndices and testDynamicNonVectorIndices") {
  SparseFixture f(PartialShape{});
  const SparsePush push{Indices({0, 1, 1, 0}, Shape({2, 2})), Of(Shape({2}), {1, 2}), {}};
  CHECK(f.ErrorOf(push) == "Input indices should be vector but received shape: [2,2]");
  CHECK(f.accumulator.num_accumulated() == 0);
}

TEST_CASE("testZeroDimensionValues") {
  SparseFixture f(Declared({3, 3}));
  const SparsePush push{Indices({0}), Of(Shape(), {1}), {}};
  CHECK(f.ErrorOf(push) == "Values cannot be 0-dimensional.");
}

TEST_CASE("testWrongNonEmptyInputValues and testDynamicWrongNonEmptyInputValues") {
  SparseFixture f(GENERATE(Declared({3, 3}), PartialShape()));
  const SparsePush push{Indices({0, 1}), Of(Shape({1, 3}), {0, 1, 1}), {}};
  CHECK(f.ErrorOf(push) == "Expected 2 non-empty input values, got 1");
}

TEST_CASE("testEmptyShapeApply") {
  SparseFixture f(Declared({}));
  for (const std::optional<Dims>& dense_shape : {std::optional<Dims>(Dims{}), {}}) {
    const SparsePush scalar_index{Indices({0}, Shape()), Of(Shape({1}), {1}), dense_shape};
    CHECK(f.ErrorOf(scalar_index) == "Input indices should be vector but received shape: []");
    const SparsePush scalar_value{Indices({0}), Of(Shape(), {1}), dense_shape};
    CHECK(f.ErrorOf(scalar_value) == "Values cannot be 0-dimensional.");
    CHECK(f.Apply(SparsePush{Indices({0}), Of(Shape({1}), {1}), dense_shape}).ok());
  }
  CHECK(f.accumulator.num_accumulated() == 2);
}

TEST_CASE("testValidateShape") {
  SparseFixture f(Declared({2, 2, kUnknown}));
  const auto zeros = [](Dims indices, const Shape& shape) {
    return SparsePush{Indices(indices), Tensor::Zeros(DType::kFloat32, shape), {}};
  };
  CHECK(f.ErrorOf(WithShape(zeros({0}, Shape({1, 2, 2})), {2, 2})) ==
        "Shape mismatch: expected shape rank at least 3, got 2");
  CHECK(f.ErrorOf(WithShape(zeros({0}, Shape({1, 2, 2})), {2, 3, 2})) ==
        "Shape mismatch: expected shape dim 1 to be 2, got 3");
  CHECK(f.ErrorOf(zeros({3}, Shape({1, 2, 2}))) ==
        "Shape mismatch: index of slice 0 exceeded limits of shape; index is 3 exceeded 2");
  CHECK(f.ErrorOf(zeros({0}, Shape({1, 2}))) ==
        "Shape mismatch: expected values rank at least 3, got 2");
  CHECK(f.ErrorOf(zeros({0}, Shape({1, 3, 2}))) ==
        "Shape mismatch: expected values dim 1 to be 2, got 3");
  REQUIRE(f.ErrorOf(zeros({0}, Shape({1, 2, 2, 2}))) == "");
  CHECK(f.ErrorOf(zeros({0}, Shape({1, 2, 2}))) == "Shape mismatch: expected values rank 4, got 3");
  CHECK(f.ErrorOf(zeros({0}, Shape({1, 2, 2, 3}))) ==
        "Shape mismatch: expected values dim 3 to be 2, got 3");
  f.Take(1);
  REQUIRE(f.ErrorOf(zeros({0}, Shape({1, 2, 2, 3})), 1) == "");
  CHECK(f.ErrorOf(zeros({0}, Shape({1, 2, 2, 2})), 1) ==
        "Shape mismatch: expected values dim 3 to be 3, got 2");
  CHECK(f.accumulator.num_accumulated() == 1);
}

TEST_CASE("testReturnShape") {
  const auto returned = [](Dims declared, const Shape& values) {
    SparseFixture f(Declared(std::move(declared)));
    REQUIRE(f.Apply({Indices({0}), Tensor::Zeros(DType::kFloat32, values), {}}).ok());
    return f.ResultOf(f.Start(1)).dense_shape;
  };
  CHECK(returned({2, kUnknown}, Shape({1, 2, 2, 2})) == Dims{2, 2, 2, 2});
  CHECK(returned({kUnknown, 2}, Shape({1, 2, 2, 3})) == Dims{-1, 2, 2, 3});
}

TEST_CASE("testApplyGradtInt32IndicesAndShape") {
  SparseFixture f(Declared({3, 3}));
  for (int k = 0; k < 2; ++k) {
    SparsePush push = PushOf(Rows{{0, {0, 0, 1}}, {2, {3, 0, 4}}});
    push.indices = Tensor(DType::kInt32, Shape({2}));
    push.indices.as<int32_t>()[0] = 0;
    push.indices.as<int32_t>()[1] = 2;
    REQUIRE(f.Apply(WithShape(std::move(push), {3, 3})).ok());
  }
  CHECK(f.accumulator.num_accumulated() == 2);
  const TakeId take = f.Start(1);
  CHECK(f.RowsOf(take) == Rows{{0, {0, 0, 1}}, {2, {3, 0, 4}}});
  CHECK(f.ResultOf(take).dense_shape == Dims{3, 3});
}

}  // namespace
}  // namespace lockstep::reference
