#include "common/tensor/indexed_slices.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

Tensor ValuesOf(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, shape);
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

std::vector<float> Elements(const Tensor& tensor) {
  const auto elements = tensor.as<float>();
  return {elements.begin(), elements.end()};
}

const std::vector<int64_t> kIndices = {7, 2, 7, 0, 2, 7};
const std::vector<float> kValues = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

TEST_CASE("rows that come several times are summed and all are put in order") {
  const Tensor values = ValuesOf(Shape({6, 2}), kValues);
  const IndexedSlices merged = SortAndMerge({kIndices, values.view()});
  CHECK(merged.indices == std::vector<int64_t>{0, 2, 7});
  CHECK(merged.values.shape() == Shape({3, 2}));
  CHECK(Elements(merged.values) == std::vector<float>{7, 8, 3 + 9, 4 + 10, 1 + 5 + 11, 2 + 6 + 12});
}

TEST_CASE("sums of a row round in the order in which its slices come") {
  const float tiny = 0x1p-24f;
  const Tensor big_first = ValuesOf(Shape({3, 1}), {1, tiny, tiny});
  const Tensor big_last = ValuesOf(Shape({3, 1}), {tiny, tiny, 1});
  const std::vector<int64_t> same = {4, 4, 4};
  CHECK(Elements(SortAndMerge({same, big_first.view()}).values)[0] == 1);
  CHECK(Elements(SortAndMerge({same, big_last.view()}).values)[0] == 1 + 2 * tiny);
}

TEST_CASE("sorted stably, every slice stays, those of one row in their order") {
  const Tensor values = ValuesOf(Shape({6, 2}), kValues);
  const IndexedSlices sorted = SortStably({kIndices, values.view()});
  CHECK(sorted.indices == std::vector<int64_t>{0, 2, 2, 7, 7, 7});
  CHECK(Elements(sorted.values) == std::vector<float>{7, 8, 3, 4, 9, 10, 1, 2, 5, 6, 11, 12});
}

TEST_CASE("no rows and rows without elements are gradients too") {
  const Tensor none = Tensor::Zeros(DType::kFloat32, Shape({0, 3}));
  CHECK(SortAndMerge({{}, none.view()}).values.shape() == Shape({0, 3}));
  const Tensor hollow = Tensor::Zeros(DType::kFloat32, Shape({2, 0}));
  const std::vector<int64_t> indices = {5, 5};
  CHECK(SortAndMerge({indices, hollow.view()}).indices == std::vector<int64_t>{5});
  CHECK(SortStably({indices, hollow.view()}).values.shape() == Shape({2, 0}));
}

TEST_CASE("sorted and merged means strictly ascending") {
  CHECK(IsSortedAndMerged({}));
  CHECK(IsSortedAndMerged(std::vector<int64_t>{3}));
  CHECK(IsSortedAndMerged(std::vector<int64_t>{-1, 3, 4}));
  CHECK_FALSE(IsSortedAndMerged(std::vector<int64_t>{3, 3}));
  CHECK_FALSE(IsSortedAndMerged(std::vector<int64_t>{4, 3}));
}

}  // namespace
}  // namespace lockstep
