#include "common/tensor/row_means.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

struct Slices {
  std::vector<int64_t> indices;
  Tensor values;

  IndexedSlicesView view() const { return {indices, values.view()}; }
};

// Element i of a slice of row r is first + r + i / 16.
Slices Of(std::vector<int64_t> rows, int64_t width, float first) {
  Slices slices{std::move(rows), {}};
  slices.values =
      Tensor(DType::kFloat32, Shape({static_cast<int64_t>(slices.indices.size()), width}));
  float* element = slices.values.as<float>().data();
  for (const int64_t row : slices.indices) {
    for (int64_t i = 0; i < width; ++i) {
      *element++ = first + static_cast<float>(row) + static_cast<float>(i) / 16;
    }
  }
  return slices;
}

TEST_CASE("a row's mean is over the gradients that name it") {
  constexpr int64_t kWidth = 21;
  const Slices a = Of({1, 4, 9}, kWidth, 0);
  const Slices b = Of({0, 4}, kWidth, 2);
  const Slices c = Of({4, 9, 10}, kWidth, 10);
  const Slices none = Of({}, kWidth, 0);
  const auto means = RowMeans::Of({a.view(), none.view(), b.view(), c.view()});
  REQUIRE(means.has_value());
  CHECK(means->rows() == absl::Span<const int64_t>({0, 1, 4, 9, 10}));
  std::vector<float> got(5 * kWidth);
  // In two parts, as threads would.
  means->Take(2, 5, &got[2 * kWidth]);
  means->Take(0, 2, got.data());
  const std::vector<float> firsts = {2, 1, 8, 14, 20};  // 4: (4 + 6 + 14) / 3; 9: (9 + 19) / 2
  for (size_t row = 0; row < firsts.size(); ++row) {
    CHECK(got[row * kWidth] == firsts[row]);
    CHECK(got[row * kWidth + 16] == firsts[row] + 1);
  }
}

TEST_CASE("sums round in the order of the gradients") {
  const float tiny = 0x1p-24f;
  const auto mean = [](std::vector<float> terms) {
    std::vector<Slices> gradients;
    for (const float term : terms) gradients.push_back(Of({0}, 1, term));
    std::vector<IndexedSlicesView> views;
    for (const Slices& gradient : gradients) views.push_back(gradient.view());
    float got = 0;
    RowMeans::Of(views)->Take(0, 1, &got);
    return got;
  };
  CHECK(mean({1, tiny, tiny, 0}) == 0.25f);
  CHECK(mean({tiny, tiny, 1, 0}) == (1 + 2 * tiny) / 4);
}

TEST_CASE("rows out of order, and rows that come twice, are left to others") {
  const Slices sound = Of({1, 2}, 4, 0);
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{2, 1}, {3, 3}}) {
    const Slices other = Of(rows, 4, 0);
    CHECK_FALSE(RowMeans::Of({sound.view(), other.view()}).has_value());
  }
}

TEST_CASE("no rows and rows without elements have means, too") {
  const Slices none = Of({}, 4, 0);
  CHECK(RowMeans::Of({none.view()})->rows().empty());
  const Slices hollow = Of({3, 8}, 0, 0);
  const auto means = RowMeans::Of({hollow.view(), hollow.view()});
  CHECK(means->rows().size() == 2);
  means->Take(0, 2, nullptr);
}

}  // namespace
}  // namespace lockstep
