#include "ps/service/serial_thread.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::ps {
namespace {

TEST_CASE("Work is done in its order, and all of it before the thread goes") {
  std::vector<int> done;
  {
    SerialThread thread;
    for (int i = 0; i < 100; ++i) thread.Do([&done, i] { done.push_back(i); });
  }
  REQUIRE(done.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(done[i] == i);
}

TEST_CASE("Work may ask for more work") {
  int depth = 0;
  {
    SerialThread thread;
    thread.Do([&] {
      ++depth;
      thread.Do([&] { ++depth; });
    });
  }
  CHECK(depth == 2);
}

}  // namespace
}  // namespace lockstep::ps
