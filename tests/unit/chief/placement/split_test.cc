#include "chief/placement/split.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

using Parts = std::vector<RowRange>;

TEST_CASE("a variable that fits stays whole") {
  CHECK(SplitRows(10, 4, 40) == Parts{{0, 10}});
  CHECK(SplitRows(10, 4, 1000) == Parts{{0, 10}});
  CHECK(SplitRows(0, 4, 1) == Parts{{0, 0}});
  CHECK(SplitRows(1, 4, 1) == Parts{{0, 1}});
}

TEST_CASE("a variable that does not fit is cut into even parts") {
  CHECK(SplitRows(10, 4, 39) == Parts{{0, 5}, {5, 5}});
  CHECK(SplitRows(11, 4, 16) == Parts{{0, 4}, {4, 4}, {8, 3}});
  CHECK(SplitRows(3, 100, 1) == Parts{{0, 1}, {1, 1}, {2, 1}});
}

TEST_CASE("parts cover every row once, are as few as can be and nearly equal") {
  for (int64_t rows = 1; rows < 60; ++rows) {
    for (int64_t most = 1; most < 25; ++most) {
      const Parts parts = SplitRows(rows, 8, most * 8 + 7);
      int64_t next = 0;
      for (const RowRange& part : parts) {
        REQUIRE(part.first == next);
        REQUIRE(part.count <= most);
        REQUIRE(part.count >= rows / static_cast<int64_t>(parts.size()));
        next += part.count;
      }
      REQUIRE(next == rows);
      REQUIRE(static_cast<int64_t>(parts.size() - 1) * most < rows);
    }
  }
}

}  // namespace
}  // namespace lockstep::chief
