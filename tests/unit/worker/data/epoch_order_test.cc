#include "worker/data/epoch_order.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <vector>

namespace lockstep::worker {
namespace {

std::vector<int64_t> Order(uint64_t seed, uint64_t epoch, int64_t window, int64_t size) {
  std::vector<int64_t> order(size, -1);
  FillEpochOrder(seed, epoch, ShuffleWindow{window}, absl::MakeSpan(order));
  return order;
}

std::vector<int64_t> Sorted(std::vector<int64_t> order) {
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<int64_t> Identity(int64_t size) {
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST_CASE("Every order is a permutation, for every size and window") {
  for (int64_t size : {0, 1, 2, 3, 7, 64, 1000}) {
    for (int64_t window : {1, 2, 3, 6, 63, 64, 65, 1000, 5000}) {
      for (uint64_t epoch : {0, 1, 2, 1000000}) {
        CAPTURE(size, window, epoch);
        CHECK(Sorted(Order(5, epoch, window, size)) == Identity(size));
      }
    }
  }
}

TEST_CASE("Orders are repeatable and differ between seeds and between data epochs") {
  CHECK(Order(1, 0, 100, 100) == Order(1, 0, 100, 100));
  CHECK(Order(1, 0, 100, 100) != Order(1, 1, 100, 100));
  CHECK(Order(1, 0, 100, 100) != Order(2, 0, 100, 100));
  CHECK(Order(1, 0, 10, 100) == Order(1, 0, 10, 100));
  CHECK(Order(1, 0, 10, 100) != Order(1, 1, 10, 100));
  CHECK(Order(1, 0, 10, 100) != Order(1, 0, 100, 100));
  // Seeds and data epochs are not added up or mixed into one number.
  CHECK(Order(1, 2, 100, 100) != Order(2, 1, 100, 100));
  CHECK(Order(0, 3, 100, 100) != Order(3, 0, 100, 100));
}

TEST_CASE("Orders are those of an explicit buffer, and stay the same from release to release") {
  // From a separate program: Philox, a list as buffer, drawn from and refilled as tf.data does it.
  CHECK(Order(42, 0, 10, 10) == std::vector<int64_t>{2, 7, 8, 6, 3, 4, 5, 9, 1, 0});
  CHECK(Order(42, 3, 10, 10) == std::vector<int64_t>{1, 6, 5, 7, 8, 2, 4, 9, 3, 0});
  CHECK(Order(42, 1, 3, 12) == std::vector<int64_t>{1, 2, 3, 5, 6, 7, 4, 9, 8, 11, 0, 10});
}

TEST_CASE("A window of one keeps the order of the file") {
  CHECK(Order(9, 4, 1, 50) == Identity(50));
}

TEST_CASE("A window beyond the data is a full permutation") {
  CHECK(Order(9, 4, 50, 50) == Order(9, 4, 1000000, 50));
}

TEST_CASE("No example comes earlier than a shuffle buffer could give it") {
  for (int64_t window : {2, 5, 17}) {
    const auto order = Order(3, 0, window, 500);
    bool reaches_the_edge = false;
    bool waits_longer = false;
    for (int64_t place = 0; place < 500; ++place) {
      CHECK(order[place] < place + window);
      reaches_the_edge |= order[place] == place + window - 1;
      waits_longer |= place > order[place] + window;
    }
    CHECK(reaches_the_edge);
    CHECK(waits_longer);
  }
}

TEST_CASE("All permutations of four examples are equally likely") {
  constexpr int kEpochs = 24000;
  std::map<std::vector<int64_t>, int> counts;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++counts[Order(7, epoch, 4, 4)];
  REQUIRE(counts.size() == 24);
  double chi_square = 0;
  for (const auto& [order, count] : counts) {
    const double difference = count - kEpochs / 24.0;
    chi_square += difference * difference / (kEpochs / 24.0);
  }
  CHECK(chi_square < 49.7);  // the 0.1 % point for 23 degrees of freedom
}

TEST_CASE("A shuffle buffer gives each order as often as tf.data's would") {
  // A buffer of 2 over 3 examples: two draws of one of two, then what is left.
  std::map<std::vector<int64_t>, int> counts;
  for (int epoch = 0; epoch < 8000; ++epoch) ++counts[Order(7, epoch, 2, 3)];
  REQUIRE(counts.size() == 4);
  for (const auto& order :
       std::vector<std::vector<int64_t>>{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}}) {
    CHECK(counts[order] == Approx(2000).margin(160));
  }
}

}  // namespace
}  // namespace lockstep::worker
