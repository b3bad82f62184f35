// CheckGrowth checks how the time of an operation grows with its number of items.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <ctime>

namespace lockstep::test {

// The least processor time of some runs of make(count)().
template <typename Make>
double SecondsOf(size_t count, Make make) {
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    auto work = make(count);
    const std::clock_t begin = std::clock();
    work();
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

// make(count) prepares work on `count` items and returns it. On 4 times as many it may take 4 times
// as long and a little more. Quadratic work would take 16 times as long.
template <typename Make>
void CheckGrowth(size_t count, Make make) {
  const double few = SecondsOf(count, make);
  const double many = SecondsOf(4 * count, make);
  CAPTURE(few, many);
  CHECK(many < 9 * few + 0.01);
}

}  // namespace lockstep::test
