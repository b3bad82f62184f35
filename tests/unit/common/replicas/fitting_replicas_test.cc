#include "common/replicas/fitting_replicas.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

TEST_CASE("a global batch divides evenly over the divisors of its batches of one example") {
  CHECK(FittingReplicas(12, 1, 1) == std::vector<int64_t>{1, 2, 3, 4, 6, 12});
  CHECK(FittingReplicas(12, 1, 3) == std::vector<int64_t>{3, 4, 6, 12});
  CHECK(FittingReplicas(12, 2, 1) == std::vector<int64_t>{1, 2, 3, 6});
  CHECK(FittingReplicas(16, 1, 2) == std::vector<int64_t>{2, 4, 8, 16});
  CHECK(FittingReplicas(7, 1, 2) == std::vector<int64_t>{7});
  CHECK(FittingReplicas(7, 1, 8).empty());
}

TEST_CASE("a batch that no tower count divides, and numbers that cannot be, fit nothing") {
  CHECK(FittingReplicas(7, 2, 1).empty());
  CHECK(FittingReplicas(0, 1, 1).empty());
  CHECK(FittingReplicas(-4, 1, 1).empty());
  CHECK(FittingReplicas(4, 0, 1).empty());
  CHECK(FittingReplicas(4, 1, 0).empty());
  CHECK(MostFittingReplicas(4, 0, 1, 4) == 0);
  CHECK(MostFittingReplicas(7, 2, 1, 4) == 0);
}

TEST_CASE("of the live replicas as many take part as the batch divides over") {
  CHECK(MostFittingReplicas(12, 1, 1, 5) == 4);
  CHECK(MostFittingReplicas(12, 1, 1, 4) == 4);
  CHECK(MostFittingReplicas(12, 1, 1, 0) == 0);
  CHECK(MostFittingReplicas(12, 1, 5, 5) == 0);
  CHECK(MostFittingReplicas(12, 1, 5, 9) == 6);
  CHECK(MostFittingReplicas(12, 1, 0, 3) == 3);
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(MostFittingReplicas(12, 1, 1, most) == 12);
  CHECK(MostFittingReplicas(most, 1, 1, 3) == 1);
}

TEST_CASE("the most that fit are the largest of all that fit") {
  for (int64_t batch = 1; batch <= 60; ++batch) {
    for (int64_t live = 1; live <= 20; ++live) {
      int64_t most = 0;
      for (const int64_t fitting : FittingReplicas(batch, 1, 2)) {
        if (fitting <= live) most = fitting;
      }
      CAPTURE(batch, live);
      CHECK(MostFittingReplicas(batch, 1, 2, live) == most);
    }
  }
}

}  // namespace
}  // namespace lockstep
