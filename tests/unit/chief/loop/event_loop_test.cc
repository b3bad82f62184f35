#include "chief/loop/event_loop.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace lockstep::chief {
namespace {

TEST_CASE("work runs in its order on the loop's thread, whoever posted it") {
  EventLoop loop;
  constexpr int kPosters = 4, kEach = 500;
  std::vector<std::vector<int>> seen(kPosters);
  int left = kPosters * kEach;
  std::vector<std::thread> posters;
  for (int poster = 0; poster < kPosters; ++poster) {
    posters.emplace_back([&, poster] {
      for (int i = 0; i < kEach; ++i) {
        loop.Post([&, poster, i] {
          seen[poster].push_back(i);
          if (--left == 0) loop.Quit();
        });
      }
    });
  }
  loop.Run(absl::Hours(1), [] {});
  for (std::thread& poster : posters) poster.join();
  for (const std::vector<int>& order : seen) {
    REQUIRE(order.size() == kEach);
    CHECK(std::is_sorted(order.begin(), order.end()));
  }
}

TEST_CASE("the tick comes without work, and beside it") {
  EventLoop loop;
  int ticks = 0;
  std::function<void()> again = [&] { loop.Post([&] { again(); }); };
  loop.Run(absl::Milliseconds(1), [&] {
    if (++ticks == 3) again();
    if (ticks == 6) loop.Quit();
  });
  CHECK(ticks == 6);
}

TEST_CASE("what is left when the loop quits is destroyed, not run; so is what comes later") {
  EventLoop loop;
  const auto token = std::make_shared<int>(0);
  bool ran = false;
  loop.Post([&] {
    loop.Post([&ran, token] { ran = true; });
    loop.Quit();
  });
  loop.Run(absl::Hours(1), [] {});
  loop.Post([&ran, token] { ran = true; });
  CHECK_FALSE(ran);
  CHECK(token.use_count() == 1);
}

TEST_CASE("a completion comes back on the loop's thread") {
  EventLoop loop;
  std::thread::id where;
  auto done = On<int>(&loop, [&](const absl::StatusOr<int>& result) {
    where = std::this_thread::get_id();
    CHECK(*result == 7);
    loop.Quit();
  });
  std::thread caller([&] { done(7); });
  loop.Run(absl::Hours(1), [] {});
  caller.join();
  CHECK(where == std::this_thread::get_id());
}

}  // namespace
}  // namespace lockstep::chief
