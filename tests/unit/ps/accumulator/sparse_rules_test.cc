// The rules of the sparse accumulator that TensorFlow's tests leave out: what its merge makes of
// unsorted and repeated rows, what counts, what is validated.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/unit/ps/accumulator/sparse_fixture.h"

namespace lockstep::reference {
namespace {

using test::Indices;
using test::PushOf;
using test::Rows;
using test::SparseFixture;
using test::SparsePush;

Rows MeanOf(const std::vector<Rows>& gradients, RowMerge merge = RowMerge::kAsPushed) {
  SparseFixture f(PartialShape(std::vector<int64_t>{}), Reduction::kMean, DType::kFloat32, merge);
  for (const Rows& gradient : gradients) f.Apply(gradient);
  return f.Take(static_cast<int>(gradients.size()));
}

TEST_CASE("the consequences of merging by heads are TensorFlow's") {
  CHECK(MeanOf({{{1, {1}}, {1, {2}}}}) == Rows{{1, {1}}, {1, {2}}});
  CHECK(MeanOf({{{1, {1}}, {1, {2}}}, {{1, {10}}}}) == Rows{{1, {5.5}}, {1, {2}}});
  CHECK(MeanOf({{{1, {10}}}, {{1, {1}}, {1, {2}}}}) == Rows{{1, {5.5}}, {1, {2}}});
  CHECK(MeanOf({{{5, {1}}, {2, {2}}}, {{2, {10}}, {5, {20}}}}) ==
        Rows{{2, {10}}, {5, {10.5}}, {2, {2}}});
  CHECK(MeanOf({{{3, {1}}, {1, {1}}}, {{3, {1}}, {1, {1}}}, {{3, {1}}, {1, {1}}}}) ==
        Rows{{3, {1}}, {1, {1}}});
  CHECK(MeanOf({{{3, {1}}, {1, {1}}}, {{1, {1}}, {3, {1}}}, {{3, {1}}, {1, {1}}}}) ==
        Rows{{1, {1}}, {3, {1}}, {1, {1}}});
  CHECK(MeanOf({{{0, {3}}, {4, {6}}}, {{0, {6}}}, {{0, {9}}}}) == Rows{{0, {6}}, {4, {6}}});
  CHECK(MeanOf({{}, {{3, {4}}}}) == Rows{{3, {4}}});
}

TEST_CASE("sorted first, a row comes out once and its mean is that of the summed gradients") {
  const RowMerge merge = RowMerge::kSorted;
  CHECK(MeanOf({{{1, {1}}, {1, {2}}}, {{1, {10}}}}, merge) == Rows{{1, {6.5}}});
  CHECK(MeanOf({{{5, {1}}, {2, {2}}}, {{2, {10}}, {5, {20}}}}, merge) ==
        Rows{{2, {6}}, {5, {10.5}}});
  CHECK(MeanOf({{{3, {1}}, {1, {1}}}, {{1, {1}}, {3, {1}}}, {{3, {1}}, {1, {1}}}}, merge) ==
        Rows{{1, {1}}, {3, {1}}});
}

TEST_CASE("for sorted gradients both ways of merging are the same, and that is a sum by row") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Rows> gradients(1 + random() % 6);
    std::map<int64_t, std::pair<float, int>> sums;
    for (Rows& gradient : gradients) {
      for (int64_t row = 0; row < 12; ++row) {
        if (random() % 3 != 0) continue;
        const float value = static_cast<float>(static_cast<int>(random() % 64) - 32);
        gradient.push_back({row, {value, -value}});
        sums[row].first += value;
        ++sums[row].second;
      }
    }
    Rows expected;
    for (const auto& [row, sum] : sums) {
      const float mean = sum.first / static_cast<float>(sum.second);
      expected.push_back({row, {mean, -mean}});
    }
    // An empty gradient says nothing about the width of a row.
    for (Rows& gradient : gradients) {
      if (gradient.empty()) gradient.push_back({20, {0, 0}});
    }
    Rows as_pushed = MeanOf(gradients);
    if (!as_pushed.empty() && as_pushed.back().first == 20) as_pushed.pop_back();
    CHECK(as_pushed == expected);
    CHECK(MeanOf(gradients) == MeanOf(gradients, RowMerge::kSorted));
  }
}

TEST_CASE("each row is divided by its own count, also when more gradients came than required") {
  SparseFixture f(PartialShape(std::vector<int64_t>{}));
  for (const float x : {3.f, 6.f, 9.f, 12.f}) f.Apply(Rows{{0, {x}}});
  f.Apply(Rows{{4, {6}}});
  const TakeId take = f.Start(2);
  CHECK(f.CountOf(take) == 5);
  CHECK(f.RowsOf(take) == Rows{{0, {7.5}}, {4, {6}}});
  CHECK(f.accumulator.num_accumulated() == 0);
  CHECK(f.accumulator.global_step() == GlobalStep(1));
}

TEST_CASE("a gradient without rows counts") {
  SparseFixture f(PartialShape(std::vector<int64_t>{4, 2}));
  const TakeId take = f.Start(2);
  for (int k = 0; k < 2; ++k) {
    CHECK_FALSE(f.IsFinished(take));
    REQUIRE(f.Apply(PushOf({}, Shape({0, 2}), {})).ok());
  }
  CHECK(f.RowsOf(take).empty());
  CHECK(f.ResultOf(take).values.shape() == Shape({0, 2}));
}

TEST_CASE("a stale sparse gradient is dropped before anything is validated") {
  SparseFixture f(PartialShape(std::vector<int64_t>{2, 2}));
  f.accumulator.SetGlobalStep(GlobalStep(3));
  const SparsePush wrong{
      Indices({0, 1, 1, 0}, Shape({2, 2})), Tensor::Zeros(DType::kFloat64, Shape()), {}};
  CHECK(f.ErrorOf(wrong, 2) == "");
  CHECK_FALSE(f.was_accepted);
  CHECK(f.accumulator.num_accumulated() == 0);
  CHECK(f.ErrorOf(wrong, 3) == "Dtype mismatch: expected float32, got float64");
}

TEST_CASE("an invalid sparse gradient changes nothing while others accumulate") {
  SparseFixture f(PartialShape(std::vector<int64_t>{2, 1}));
  f.Apply(Rows{{0, {10}}});
  CHECK(f.ErrorOf(PushOf(Rows{{0, {1}}, {2, {1}}})) ==
        "Shape mismatch: index of slice 1 exceeded limits of shape; index is 2 exceeded 2");
  CHECK(f.ErrorOf(PushOf(Rows{{0, {1, 2}}})) ==
        "Shape mismatch: expected values dim 1 to be 1, got 2");
  f.Apply(Rows{{0, {20}}});
  CHECK(f.Take(2) == Rows{{0, {15}}});
}

TEST_CASE("a negative index passes, as in TensorFlow, and stands before all others") {
  SparseFixture f(PartialShape(std::vector<int64_t>{2, 1}));
  f.Apply(Rows{{0, {1}}});
  f.Apply(Rows{{-1, {2}}});
  CHECK(f.Take(2) == Rows{{-1, {2}}, {0, {1}}});
}

TEST_CASE("what a gradient's own shape says beyond the declared rank is not looked at") {
  SparseFixture f(PartialShape(std::vector<int64_t>{2}));
  SparsePush push = PushOf(Rows{{0, {1}}});
  push.dense_shape = {2, 77, 88};
  CHECK(f.Apply(push).ok());
}

TEST_CASE("a declared shape of unknown rank leaves rows and slices free until the first gradient") {
  SparseFixture f;
  f.Apply(Rows{{1000000, {1, 2}}});
  CHECK(f.ErrorOf(PushOf(Rows{{0, {1}}})) ==
        "Shape mismatch: expected values dim 1 to be 2, got 1");
  CHECK(f.RowsOf(f.Start(1)) == Rows{{1000000, {1, 2}}});
  f.Apply(Rows{{0, {1}}}, 1);
  CHECK(f.Take(1) == Rows{{0, {1}}});
}

TEST_CASE("rows of half precision are summed and divided in half precision") {
  SparseFixture f(PartialShape(), Reduction::kSum, DType::kFloat16);
  f.Apply(Rows{{3, {2048}}});
  for (int i = 0; i < 9; ++i) f.Apply(Rows{{3, {1}}});
  CHECK(f.Take(1) == Rows{{3, {2048}}});
  SparseFixture brain(PartialShape(), Reduction::kMean, DType::kBFloat16);
  brain.Apply(Rows{{3, {256}}, {4, {1}}});
  brain.Apply(Rows{{3, {1}}});
  CHECK(brain.Take(1) == Rows{{3, {128}}, {4, {1}}});
}

TEST_CASE("takers of sparse gradients queue: the one in front blocks, a cancelled one makes way") {
  SparseFixture f;
  const TakeId first = f.Start(5);
  const TakeId second = f.Start(2);
  f.Apply(Rows{{0, {2}}});
  f.Apply(Rows{{0, {4}}});
  CHECK_FALSE(f.IsFinished(second));
  f.Cancel(first);
  CHECK(f.RowsOf(second) == Rows{{0, {3}}});
}

}  // namespace
}  // namespace lockstep::reference
