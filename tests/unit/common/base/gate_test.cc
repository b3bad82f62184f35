#include "common/base/gate.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>

namespace lockstep {
namespace {

TEST_CASE("An open gate lets work in and a closed one does not") {
  Gate gate;
  CHECK(gate.Enter());
  gate.Close();
  CHECK_FALSE(gate.Enter());
  gate.Close();  // again is harmless
}

TEST_CASE("A pass that was made by default or moved from holds nothing") {
  Gate gate;
  Gate::Pass none;
  CHECK_FALSE(none);
  Gate::Pass first = gate.Enter();
  Gate::Pass second = std::move(first);
  CHECK(second);
  CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): the contract says what is left
  second = Gate::Pass();
  gate.Close();  // would wait for ever if a pass were still out
}

TEST_CASE("Assigning over a pass gives the old one back") {
  Gate one;
  Gate two;
  Gate::Pass pass = one.Enter();
  pass = two.Enter();
  one.Close();
  CHECK(two.Enter());
}

TEST_CASE("Closing waits until the last pass is given back") {
  Gate gate;
  std::optional<Gate::Pass> pass = gate.Enter();
  std::atomic<bool> closed = false;
  std::thread closer([&] {
    gate.Close();
    closed = true;
  });
  // Refused passes tell that Close is under way.
  while (gate.Enter()) std::this_thread::yield();
  CHECK_FALSE(closed);
  pass.reset();
  closer.join();
  CHECK(closed);
}

TEST_CASE("No work is inside after Close, however many threads come and go") {
  Gate gate;
  std::atomic<int> inside = 0;
  std::atomic<int> entered = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (Gate::Pass pass = gate.Enter()) {
        ++inside;
        ++entered;
        --inside;
      }
    });
  }
  while (entered < 1000) std::this_thread::yield();
  gate.Close();
  const int left = inside;
  for (std::thread& thread : threads) thread.join();
  CHECK(left == 0);
}

}  // namespace
}  // namespace lockstep
