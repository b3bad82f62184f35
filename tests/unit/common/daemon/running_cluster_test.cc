#include "common/daemon/running_cluster.h"

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

constexpr char kFirst[] = R"({"ps": ["a:1", "b:1"], "worker": ["a:2"], "chief": ["a:3"]})";
constexpr char kMoved[] = R"({"ps": ["a:1", "c:1"], "worker": ["a:2"], "chief": ["a:3"]})";

constexpr int kRounds = 300;

struct Fixture {
  explicit Fixture(Role role = Role::kChief) : cluster(Load(role), false) {}
  TaskConfig Load(Role role) {
    const std::string path = folder.Write("cluster.json", kFirst);
    return LoadTask(role, path, 0, std::nullopt).value();
  }
  std::optional<ClusterSpec> Reread(const std::string& text, bool workers_may_change = false) {
    folder.Write("cluster.json", text);
    return cluster.Reread(workers_may_change);
  }

  test::TemporaryFolder folder;
  RunningCluster cluster;
};

TEST_CASE("a changed file is the spec from then on, and the one before is remembered") {
  Fixture f;
  const std::string first = f.cluster.spec().Canonical();
  CHECK_FALSE(f.cluster.Reread(false).has_value());
  const auto changed = f.Reread(kMoved);
  REQUIRE(changed.has_value());
  CHECK(changed->ps == std::vector<std::string>{"a:1", "c:1"});
  CHECK(f.cluster.spec().Canonical() == changed->Canonical());
  CHECK(f.cluster.known()->texts() == std::vector<std::string>{changed->Canonical(), first});
  CHECK_FALSE(f.cluster.Reread(false).has_value());
}

TEST_CASE("a file that is broken, or changes what may not change, leaves the spec as it was") {
  Fixture f;
  const std::string first = f.cluster.spec().Canonical();
  for (const char* text :
       {"", "{", R"({"ps": ["a:1"], "worker": ["a:2"], "chief": ["a:3"]})",
        R"({"ps": ["b:1", "a:1"], "worker": ["a:2"], "chief": ["a:3"]})",
        R"({"ps": ["a:1", "b:1"], "worker": ["a:2"], "chief": ["c:3"]})",
        R"({"ps": ["a:1", "b:1"], "worker": ["a:2", "b:2"], "chief": ["a:3"]})"}) {
    CAPTURE(text);
    CHECK_FALSE(f.Reread(text).has_value());
    CHECK(f.cluster.spec().Canonical() == first);
    CHECK(f.cluster.known()->texts() == std::vector<std::string>{first});
  }
  CHECK(f.Reread(kMoved).has_value());
  const auto grown =
      f.Reread(R"({"ps": ["a:1", "c:1"], "worker": ["a:2", "b:2"], "chief": ["a:3"]})", true);
  REQUIRE(grown.has_value());
  CHECK(grown->workers.size() == 2);
}

TEST_CASE("what the chief tells counts, except for other workers") {
  Fixture f(Role::kWorker);
  ClusterSpec told = f.cluster.spec();
  CHECK_FALSE(f.cluster.Adopt(told).has_value());
  told.chief = "d:3";
  REQUIRE(f.cluster.Adopt(told).has_value());
  CHECK(f.cluster.spec().chief == "d:3");
  told.chief = "e:3";
  told.workers = {"x:1", "x:2"};
  REQUIRE(f.cluster.Adopt(told).has_value());
  CHECK(f.cluster.spec().chief == "e:3");
  CHECK(f.cluster.spec().workers == std::vector<std::string>{"a:2"});
  const std::string before = f.cluster.spec().Canonical();
  told.ps = {"no address", "b:1"};
  CHECK_FALSE(f.cluster.Adopt(told).has_value());
  CHECK_FALSE(f.cluster.Adopt(ClusterSpec()).has_value());
  CHECK(f.cluster.spec().Canonical() == before);
}

// The second ps cannot move to the address that the first one has got, nor the other way round.
TEST_CASE("of two changes at once that exclude each other one is refused") {
  REQUIRE(log::Init("running_cluster", "error").ok());
  Fixture f;
  const TaskConfig task = f.Load(Role::kWorker);
  std::vector<ClusterSpec> told(2, task.cluster);
  told[0].ps = {"a:1", "c:1"};
  told[1].ps = {"c:1", "b:1"};
  for (int round = 0; round < kRounds; ++round) {
    RunningCluster cluster(task, false);
    std::barrier start(2);
    std::atomic<int> adopted = 0;
    std::vector<std::thread> threads;
    for (const ClusterSpec& spec : told) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        if (cluster.Adopt(spec).has_value()) ++adopted;
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(adopted == 1);
    REQUIRE(cluster.known()->texts().front() == cluster.spec().Canonical());
  }
}

TEST_CASE("a spec of TF_CONFIG cannot change") {
  const std::string text = R"({"cluster": {"ps": ["a:1"], "worker": ["a:2"], "chief": ["a:3"]}})";
  RunningCluster cluster(LoadTask(Role::kChief, "", 0, text).value(), false);
  CHECK_FALSE(cluster.Reread(true).has_value());
}

}  // namespace
}  // namespace lockstep
