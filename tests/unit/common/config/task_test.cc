#include "common/config/task.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr char kCluster[] =
    R"({"ps": ["a:1", "b:2"], "worker": ["w:1", "w:2", "w:3"], "chief": ["c:1"]})";

std::string TfConfigOf(const std::string& type, int index) {
  return std::string(R"({"cluster": )") + kCluster + R"(, "task": {"type": ")" + type +
         R"(", "index": )" + std::to_string(index) + "}}";
}

std::string ErrorOf(const absl::StatusOr<TaskConfig>& task, ExitCode code) {
  REQUIRE_FALSE(task.ok());
  CHECK(ExitCodeFor(task.status()) == code);
  return std::string(task.status().message());
}

TEST_CASE("A task is found by file and index") {
  test::TemporaryFolder folder;
  const std::string path = folder.Write("cluster.json", kCluster);
  const auto task = LoadTask(Role::kWorker, path, 2, std::nullopt);
  REQUIRE(task.ok());
  CHECK(task->index == 2);
  CHECK(task->address() == "w:3");
  CHECK(task->source == path);
  CHECK(LoadTask(Role::kChief, path, std::nullopt, std::nullopt)->address() == "c:1");
  CHECK(LoadTask(Role::kChief, path, 0, std::nullopt)->address() == "c:1");
}

TEST_CASE("A task is found by TF_CONFIG alone") {
  const auto task = LoadTask(Role::kPs, "", std::nullopt, TfConfigOf("ps", 1));
  REQUIRE(task.ok());
  CHECK(task->address() == "b:2");
  CHECK(task->source == "TF_CONFIG");
  CHECK(LoadTask(Role::kChief, "", std::nullopt, TfConfigOf("master", 0))->address() == "c:1");
}

TEST_CASE("Flags win over TF_CONFIG") {
  test::TemporaryFolder folder;
  const std::string path = folder.Write("cluster.json", kCluster);
  CHECK(LoadTask(Role::kPs, "", 0, TfConfigOf("ps", 1))->address() == "a:1");
  CHECK(LoadTask(Role::kPs, path, 0, "not JSON at all")->address() == "a:1");
}

TEST_CASE("One of several chiefs has to say which it is") {
  const std::string cluster = R"({"ps": ["a:1"], "worker": ["w:1"], "chief": ["c:1", "d:2"]})";
  const test::TemporaryFolder folder;
  const std::string path = folder.Write("cluster.json", cluster);
  CHECK_THAT(ErrorOf(LoadTask(Role::kChief, path, {}, {}), ExitCode::kUsage),
             Contains("--task_index: expected the index of this chief, got none") &&
                 Contains("--task_index=0 to 1"));
  CHECK(LoadTask(Role::kChief, path, 1, {})->address() == "d:2");
  const std::string config =
      "{\"cluster\": " + cluster + R"(, "task": {"type": "chief", "index": 1}})";
  CHECK(LoadTask(Role::kChief, "", {}, config)->address() == "d:2");
  CHECK(LoadTask(Role::kChief, "", 0, config)->address() == "c:1");
}

TEST_CASE("A task index outside the cluster says how many there are") {
  test::TemporaryFolder folder;
  const std::string path = folder.Write("cluster.json", kCluster);
  for (int64_t index : {int64_t{3}, int64_t{-1}, int64_t{1} << 32}) {
    CHECK_THAT(ErrorOf(LoadTask(Role::kWorker, path, index, {}), ExitCode::kBadConfiguration),
               Contains("the cluster has 3 worker tasks. Remedy: use a task index from 0 to 2"));
  }
  CHECK_THAT(ErrorOf(LoadTask(Role::kChief, path, 1, {}), ExitCode::kBadConfiguration),
             Contains("there is no chief 1, the cluster has 1 chief."));
  CHECK_THAT(ErrorOf(LoadTask(Role::kPs, "", std::nullopt, TfConfigOf("ps", 2)),
                     ExitCode::kBadConfiguration),
             Contains("TF_CONFIG: there is no ps 2") && Contains("enableDynamicWorker"));
}

TEST_CASE("What the command line lacks is a usage error") {
  test::TemporaryFolder folder;
  const std::string path = folder.Write("cluster.json", kCluster);
  CHECK_THAT(ErrorOf(LoadTask(Role::kPs, "", 0, std::nullopt), ExitCode::kUsage),
             Contains("--cluster=FILE, or set TF_CONFIG"));
  CHECK_THAT(ErrorOf(LoadTask(Role::kPs, path, std::nullopt, std::nullopt), ExitCode::kUsage),
             Contains("--task_index=0 to 1"));
}

TEST_CASE("A binary of another role than TF_CONFIG's task is refused") {
  CHECK_THAT(ErrorOf(LoadTask(Role::kPs, "", std::nullopt, TfConfigOf("worker", 0)),
                     ExitCode::kBadConfiguration),
             Contains("task.type is worker but this program is the ps"));
}

}  // namespace
}  // namespace lockstep
