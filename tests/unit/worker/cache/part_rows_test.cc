#include "worker/cache/part_rows.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

// Rows [0, 3), [3, 4) and [4, 10).
WholeVariable InThreeParts() {
  WholeVariable variable;
  for (const auto& [first, count] : {std::pair{0, 3}, {3, 1}, {4, 6}}) {
    variable.parts.push_back({.first_row = first, .num_rows = count});
  }
  return variable;
}

std::vector<std::vector<int64_t>> Divided(PartRows* parts, const std::vector<int64_t>& rows) {
  parts->Divide(rows);
  std::vector<std::vector<int64_t>> divided;
  size_t next = 0;
  for (size_t part = 0; part < 3; ++part) {
    const PartRows::Range& range = parts->of_part(part);
    CHECK(range.begin == next);
    next += range.indices.size();
    divided.emplace_back(range.indices.begin(), range.indices.end());
  }
  CHECK(next == rows.size());
  return divided;
}

TEST_CASE("rows go to the part that has them, counted from its first row") {
  const WholeVariable variable = InThreeParts();
  PartRows parts(variable);
  using Rows = std::vector<std::vector<int64_t>>;
  CHECK(Divided(&parts, {0, 2, 3, 4, 9}) == Rows{{0, 2}, {0}, {0, 5}});
  CHECK(Divided(&parts, {}) == Rows{{}, {}, {}});
  CHECK(Divided(&parts, {3}) == Rows{{}, {0}, {}});
  CHECK(Divided(&parts, {5}) == Rows{{}, {}, {1}});
  CHECK(Divided(&parts, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) ==
        Rows{{0, 1, 2}, {0}, {0, 1, 2, 3, 4, 5}});
}

}  // namespace
}  // namespace lockstep::worker
