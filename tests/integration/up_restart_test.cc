// A launched job whose processes give up goes on by itself.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kSteps = 400;

TEST_CASE("a launched job that ends with 138 for lack of a worker goes on from what it saved") {
  Cluster cluster(1, 1);  // for its folder and its job
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  const std::string run = cluster.folder().Path("run");
  std::filesystem::create_directories(checkpoints);  // to be watched
  const std::string job = cluster.WriteJob({.max_steps = kSteps,
                                            .sync = "quorum_policy: ABORT",
                                            .checkpoint = "folder: 'checkpoints' every_steps: 50",
                                            .more = "local { ps: 1 workers: 2 }"});
  Process up({Binary("deploy/cli/up"), "--job=" + job, "--bin_dir=" + Binary(""),
              "--run_dir=" + run, "--worker_sleeps=10ms,10ms"});
  REQUIRE(WaitForText(checkpoints + "/LATEST", "ckpt-", kWhole));

  // Of worker 1, which is silent from now on. Arguments end with a null byte.
  const std::vector<pid_t> found =
      ProcessesWith(absl::StrCat(run, "/job.token", std::string(1, '\0'), "--task_index=1"));
  REQUIRE(found.size() == 1);
  REQUIRE(kill(found[0], SIGSTOP) == 0);
  const bool has_ended = up.WaitForOutput("chief ended with exit code 138", kWhole);
  REQUIRE(kill(found[0], SIGCONT) == 0);
  INFO(up.Output());
  REQUIRE(has_ended);

  const auto code = up.Wait(kWhole);
  INFO(up.Output() << cluster.folder().Read("run/logs/chief.log"));
  CHECK(code == 0);
  for (const char* task : {"chief", "ps 0", "worker 0"}) {
    CHECK_THAT(up.Output(), Contains(absl::StrCat(task, " ended with exit code 138")));
  }
  CHECK_THAT(cluster.folder().Read("run/logs/chief.log"), Contains("restored from " + checkpoints));
  const auto newest = ResolveCheckpoint(checkpoints);
  REQUIRE(newest.ok());
  CHECK(ReadManifest(*newest)->step == kSteps);
  CHECK(ProcessesWith(cluster.folder().path()).empty());
}

}  // namespace
}  // namespace lockstep::test
