#include "worker/strategy/replicated/row_share.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

namespace lockstep::worker {
namespace {

const WholeVariable kTable = {.name = "table", .shape = Shape({10, 2}), .sparse = true};

using Rows = std::vector<int64_t>;
using Values = std::vector<float>;

void Write(const RowShare& share, const Rows& rows, const Values& values, std::byte* to) {
  std::ranges::copy(values, share.Begin(rows, to).as<float>().begin());
}

Rows RowsOf(const IndexedSlicesView& slices) {
  return {slices.indices.begin(), slices.indices.end()};
}

Values ValuesOf(const IndexedSlicesView& slices) {
  const std::span<const float> values = slices.values.as<float>();
  return {values.begin(), values.end()};
}

TEST_CASE("a share has room for the most rows, and tells how many it has") {
  const RowShare share(kTable, 3);
  Tensor memory(share.dtype(), Shape({share.num_elements()}));
  auto* const begin = static_cast<std::byte*>(memory.data());
  for (const Rows& rows : {Rows{0, 4, 9}, Rows{7}, Rows{}}) {
    const Values values(2 * rows.size(), 1.5f);
    Write(share, rows, values, begin);
    CHECK(RowsOf(share.View(begin)) == rows);
    CHECK(ValuesOf(share.View(begin)) == values);
    CHECK(share.View(begin).values.shape == Shape({static_cast<int64_t>(rows.size()), 2}));
  }
}

TEST_CASE("a share that no participant can have is refused") {
  const RowShare share(kTable, 3);
  Tensor memory(share.dtype(), Shape({share.num_elements()}));
  auto* const begin = static_cast<std::byte*>(memory.data());
  Write(share, {0, 4, 9}, Values(6), begin);
  CHECK(share.Check(begin).ok());
  auto* const numbers = reinterpret_cast<int64_t*>(begin);
  const auto with = [&](Rows wrong) {
    std::ranges::copy(wrong, numbers);
    return std::string(share.Check(begin).message());
  };
  CHECK(with({4, 0, 4, 9}) == "expected at most 3 rows, got 4");
  CHECK(with({-1, 0, 4, 9}) == "expected at most 3 rows, got -1");
  CHECK(with({3, 0, 4, 10}) == "expected rows in ascending order below 10, got 10 after 4");
  CHECK(with({3, 0, 0, 9}) == "expected rows in ascending order below 10, got 0 after 0");
  CHECK(with({1, -1, 0, 0}) == "expected rows in ascending order below 10, got -1 after -1");
}

TEST_CASE("rows are added in the order of the shares, and a mean is over all participants") {
  const RowShare share(kTable, 2);
  Tensor gathered(share.dtype(), Shape({3 * share.num_elements()}));
  auto* const begin = static_cast<std::byte*>(gathered.data());
  // In another order 1e8 + 1 - 1e8 is 1.
  Write(share, {2, 5}, {1e8f, 3, 6, 9}, begin);
  Write(share, {2, 7}, {1, 3, 12, 15}, begin + share.num_bytes());
  Write(share, {2}, {-1e8f, 3}, begin + 2 * share.num_bytes());
  const TensorView view = std::as_const(gathered).view();
  const IndexedSlices sum = MergeShares(share, view, /*average=*/false);
  CHECK(sum.indices == Rows{2, 5, 7});
  CHECK(ValuesOf(sum.view()) == Values{0, 9, 6, 9, 12, 15});
  const IndexedSlices mean = MergeShares(share, view, /*average=*/true);
  CHECK(mean.indices == Rows{2, 5, 7});
  CHECK(ValuesOf(mean.view()) == Values{0, 3, 2, 3, 4, 5});
}

}  // namespace
}  // namespace lockstep::worker
