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
#include "tests/support/temporary_folder.h"
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

// A folder of programs whose chief is killed when it starts for the first time.
std::string ProgramsWithDyingChief(const TemporaryFolder& folder) {
  for (const std::string role : {"ps", "worker"}) {
    std::filesystem::create_directories(folder.Path("bin/" + role));
    std::filesystem::create_symlink(Binary(role + "/" + role),
                                    folder.Path(absl::StrCat("bin/", role, "/", role)));
  }
  const std::string mark = folder.Path("bin/mark");
  const std::string chief =
      folder.Write("bin/chief/chief",
                   absl::StrCat("#!/bin/sh\n[ -e ", mark, " ] || { touch ", mark,
                                "; kill -9 $$; }\nexec ", Binary("chief/chief"), " \"$@\"\n"));
  std::filesystem::permissions(chief, std::filesystem::perms::owner_all);
  return folder.Path("bin");
}

TEST_CASE("a chief that dies before the job begins is started with the flag of up again") {
  const Cluster cluster(1, 1);  // for its folder and its job
  const std::string run = cluster.folder().Path("run");
  const std::string job = cluster.WriteJob({.max_steps = kSteps,
                                            .checkpoint = "folder: 'checkpoints' every_steps: 200",
                                            .evaluation = "every_steps: 100",
                                            .more = "local { ps: 1 workers: 1 }"});
  std::vector<std::string> command = {Binary("deploy/cli/up"), "--job=" + job,
                                      "--bin_dir=" + Binary(""), "--run_dir=" + run};
  REQUIRE(RunToEnd(command, kWhole).exit_code == 0);

  command[2] = "--bin_dir=" + ProgramsWithDyingChief(cluster.folder());
  command.push_back("--restore=" + cluster.folder().Path("checkpoints/ckpt-200"));
  const Ended restored = RunToEnd(command, kWhole);
  INFO(restored.output << cluster.folder().Read("run/logs/chief.log"));
  CHECK(restored.exit_code == 0);
  CHECK_THAT(restored.output, Contains("chief ended with signal 9"));
  CHECK_THAT(cluster.folder().Read("run/summary.json"), Contains("\"start_step\": 200"));

  REQUIRE(std::filesystem::remove(cluster.folder().Path("bin/mark")));
  command.back() = "--fresh";
  command.push_back("--worker_sleeps=10ms");
  Process up(command);
  // Once a status has told of training, it goes on with the job.
  REQUIRE(up.WaitForOutput("step 100: test accuracy", kWhole));
  CHECK_THAT(up.Output(), Contains("chief ended with signal 9"));
  CHECK_THAT(cluster.folder().Read("run/logs/chief.log"), Contains("training begins at step 0 of"));
  const std::string arguments = run + "/summary.json" + std::string(1, '\0');  // of the chief
  const std::vector<pid_t> fresh = ProcessesWith(arguments + "--fresh");
  REQUIRE(fresh.size() == 1);
  REQUIRE(kill(fresh[0], SIGKILL) == 0);
  REQUIRE(WaitForText(run + "/logs/chief.log", "taking over at step", kWhole));
  CHECK(ProcessesWith(arguments + "--resume").size() == 1);
  const auto code = up.Wait(kWhole);
  INFO(up.Output() << cluster.folder().Read("run/logs/chief.log"));
  CHECK(code == 0);
  CHECK_THAT(cluster.folder().Read("run/logs/chief.log"),
             Contains("moved the checkpoints of earlier runs"));
}

}  // namespace
}  // namespace lockstep::test
