#include "tests/chaos/usage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr Usage kSmall = {.memory = 100 << 20, .descriptors = 20, .threads = 10};

UsageWatch WatchOf(const std::vector<Usage>& by_second) {
  UsageWatch watch(absl::Seconds(by_second.size()));
  for (size_t i = 0; i < by_second.size(); ++i) watch.Add("ps 0", absl::Seconds(i), by_second[i]);
  return watch;
}

TEST_CASE("what a task takes is compared between the second quarter and the last") {
  Usage larger = kSmall;
  SECTION("memory") {
    larger.memory = 119 << 20;
    CHECK_THAT(WatchOf({kSmall, kSmall, kSmall, larger}).Growth().at(0),
               Contains("ps 0 has grown from 104857600 to 124780544 bytes of memory"));
  }
  SECTION("descriptors") {
    larger.descriptors = 31;
    CHECK_THAT(WatchOf({kSmall, kSmall, kSmall, larger}).Growth().at(0),
               Contains("from 20 to 31 descriptors"));
  }
  SECTION("threads") {
    larger.threads = 16;
    CHECK_THAT(WatchOf({kSmall, kSmall, kSmall, larger}).Growth().at(0),
               Contains("from 10 to 16 threads"));
  }
  CHECK(WatchOf({kSmall, kSmall, kSmall, larger}).Growth().size() == 1);
  CHECK(WatchOf({kSmall, larger, kSmall, larger}).Growth().empty());
}

TEST_CASE("a tenth more and the slack are no growth") {
  const Usage larger = {.memory = 118 << 20, .descriptors = 30, .threads = 15};
  CHECK(WatchOf({kSmall, kSmall, kSmall, larger}).Growth().empty());
}

TEST_CASE("the warm-up and a run beyond its length count as they should") {
  const Usage none;
  const UsageWatch warm = WatchOf({none, kSmall, none, kSmall});
  REQUIRE(warm.Rows().size() == 1);
  CHECK(warm.Rows()[0].late.threads == kSmall.threads);
  CHECK(warm.Growth().empty());
  UsageWatch late(absl::Seconds(4));
  late.Add("ps 0", absl::Seconds(1), none);
  late.Add("ps 0", absl::Seconds(9), kSmall);
  CHECK(late.Growth().size() == 3);
  late.Add("ps 1", absl::Seconds(9), kSmall);  // not seen before
  CHECK(late.Rows().size() == 1);
}

TEST_CASE("the system knows descriptors, threads and memory of a process, and none of nobody") {
  std::thread([] {}).join();  // with the first one TSan begins a thread of its own
  const auto before = UsageOf(getpid());
  REQUIRE(before.has_value());
  std::vector<FileDescriptor> opened;
  for (int i = 0; i < 5; ++i) opened.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  absl::Notification done;
  std::thread waiting([&] { done.WaitForNotification(); });
  const std::vector<char> memory(64 << 20, 1);
  const auto after = UsageOf(getpid());
  done.Notify();
  waiting.join();
  REQUIRE(after.has_value());
  CHECK(after->descriptors == before->descriptors + 5);
  CHECK(after->threads == before->threads + 1);
  CHECK(after->memory >= before->memory + static_cast<int64_t>(memory.size()));
  CHECK_FALSE(UsageOf(0x7ffffff0).has_value());
}

}  // namespace
}  // namespace lockstep::test
