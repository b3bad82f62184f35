#include "common/tensor/gather_rows.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

namespace lockstep {
namespace {

TEST_CASE("rows come in the order in which they are named, each as often as it is") {
  for (const size_t row_bytes : {1, 3, 64, 200, 1000}) {
    constexpr int64_t kRows = 50;
    std::vector<std::byte> table(kRows * row_bytes);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::byte>(i * 7 / row_bytes);
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < 70; ++i) rows.push_back(i * 37 % kRows);
    std::vector<std::byte> got(rows.size() * row_bytes);
    PrefetchRows(table.data(), row_bytes, rows);
    GatherRows(table.data(), row_bytes, rows, got.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(std::memcmp(&got[i * row_bytes], &table[rows[i] * row_bytes], row_bytes) == 0);
    }
  }
}

TEST_CASE("no rows, and rows without bytes, need no memory") {
  std::byte untouched{7};
  GatherRows(nullptr, 8, {}, &untouched);
  GatherRows(nullptr, 0, std::vector<int64_t>{1, 2}, &untouched);
  CHECK(untouched == std::byte{7});
}

}  // namespace
}  // namespace lockstep
