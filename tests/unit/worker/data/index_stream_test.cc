#include "worker/data/index_stream.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

namespace lockstep::worker {
namespace {

std::vector<int64_t> Read(IndexStream& stream, int64_t position, int64_t count) {
  std::vector<int64_t> out(count, -1);
  stream.Read(position, absl::MakeSpan(out));
  return out;
}

TEST_CASE("Each data epoch of the stream holds every example once") {
  IndexStream stream(3, 11, ShuffleWindow{11});
  const auto all = Read(stream, 0, 110);
  for (int epoch = 0; epoch < 10; ++epoch) {
    std::vector<int64_t> sorted(all.begin() + epoch * 11, all.begin() + (epoch + 1) * 11);
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < 11; ++i) CHECK(sorted[i] == i);
  }
  CHECK(std::vector<int64_t>(all.begin(), all.begin() + 11) !=
        std::vector<int64_t>(all.begin() + 11, all.begin() + 22));
}

TEST_CASE("Any piece read alone equals the same piece of a sequential read") {
  for (int64_t window : {1, 4, 13}) {
    IndexStream sequential(3, 13, ShuffleWindow{window});
    const auto all = Read(sequential, 0, 200);
    IndexStream jumping(3, 13, ShuffleWindow{window});
    for (int64_t begin : {190, 0, 12, 13, 14, 100, 26, 7, 150, 150}) {
      for (int64_t count : {0, 1, 2, 13, 14, 27, 10}) {
        if (begin + count > 200) continue;
        CAPTURE(window, begin, count);
        CHECK(Read(jumping, begin, count) ==
              std::vector<int64_t>(all.begin() + begin, all.begin() + begin + count));
      }
    }
  }
}

TEST_CASE("A single example is repeated for ever") {
  IndexStream stream(3, 1, ShuffleWindow{1});
  CHECK(Read(stream, 1000000, 5) == std::vector<int64_t>(5, 0));
}

TEST_CASE("Positions near the end of 64 bits are read") {
  IndexStream stream(3, 10, ShuffleWindow{10});
  const int64_t position = std::numeric_limits<int64_t>::max() - 25;
  const auto once = Read(stream, position, 25);
  CHECK(std::all_of(once.begin(), once.end(), [](int64_t i) { return i >= 0 && i < 10; }));
  CHECK(Read(stream, position, 25) == once);
}

}  // namespace
}  // namespace lockstep::worker
