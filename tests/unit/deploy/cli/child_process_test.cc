#include "deploy/cli/child_process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "deploy/cli/last_lines.h"
#include "deploy/cli/local_cluster.h"
#include "deploy/cli/ports.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

using Catch::Matchers::Contains;

int Wait(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

Command Shell(const std::string& script, const std::string& log) {
  return {.name = "ps 0", .arguments = {"/bin/sh", "-c", script}, .log_path = log};
}

TEST_CASE("a started program has its own group, no terminal, no TF_CONFIG, and a log") {
  const test::TemporaryFolder folder;
  setenv("TF_CONFIG", "{}", 1);
  Command command =
      Shell("echo \"tf:$TF_CONFIG omp:$OMP_WAIT_POLICY\"; cat; echo error >&2; exit 7",
            folder.Path("log"));
  command.environment = {"OMP_WAIT_POLICY=passive"};
  const auto pid = Start(command);
  unsetenv("TF_CONFIG");
  REQUIRE(pid.ok());
  CHECK(getpgid(*pid) == *pid);
  CHECK(ExitCodeOf(Wait(*pid)) == 7);
  CHECK(folder.Read("log") == "tf: omp:passive\nerror\n");
}

TEST_CASE("signals that the launcher keeps for itself reach the program") {
  const test::TemporaryFolder folder;
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, &before);
  const auto pid = Start(Shell("kill -TERM $$; exit 3", folder.Path("log")));
  sigprocmask(SIG_SETMASK, &before, nullptr);
  REQUIRE(pid.ok());
  const int status = Wait(*pid);
  CHECK(ExitCodeOf(status) == 128 + SIGTERM);
  CHECK_THAT(DescribeEnd(status), Contains("signal 15"));
}

TEST_CASE("a program that is not there and a log that cannot be made are errors") {
  const test::TemporaryFolder folder;
  const auto missing = Start(
      {.name = "worker 1", .arguments = {folder.Path("worker")}, .log_path = folder.Path("log")});
  CHECK(missing.status().code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(missing.status().message()),
             Contains("worker 1") && Contains(folder.Path("worker")) && Contains("Remedy"));
  CHECK_FALSE(Start(Shell("true", folder.Path("no/such/folder"))).ok());
}

TEST_CASE("a command reads as a shell would take it") {
  Command command{.arguments = {"/a b/ps", "--cluster=c.json", "it's", ""}};
  command.environment = {"A=1 2", "B=x"};
  CHECK(command.ToShell() == "A='1 2' B=x '/a b/ps' --cluster=c.json 'it'\\''s' ''");
}

TEST_CASE("exit codes are explained, unknown ones just named") {
  CHECK(DescribeEnd(78 << 8) == "exit code 78 (cluster or job configuration wrong)");
  CHECK(DescribeEnd(3 << 8) == "exit code 3");
}

TEST_CASE("free addresses are on loopback, different, and outside the outgoing range") {
  const auto addresses = FreeLoopbackAddresses(50);
  REQUIRE(addresses.ok());
  std::vector<std::string> sorted = *addresses;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  for (const std::string& address : sorted) {
    CHECK_THAT(address, Catch::Matchers::StartsWith("127.0.0.1:"));
    CHECK(std::stoi(address.substr(10)) < 32768);
  }
  CHECK(FreeLoopbackAddresses(100000).status().code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("the last lines of a log are its last lines") {
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "line " + std::to_string(i) + "\n";
  const std::string path = folder.Write("log", text + "no newline");
  CHECK(LastLines(path, 3) == std::vector<std::string>{"line 4998", "line 4999", "no newline"});
  CHECK(LastLines(folder.Write("empty", ""), 3).empty());
  CHECK(LastLines(folder.Path("missing"), 3).empty());
  CHECK(LastLines(folder.Write("long", std::string(20000, 'x')), 1)[0].size() < 600);
}

TEST_CASE("the planned tasks share the cores and name every file") {
  const ClusterSpec cluster = {.ps = {"h:1"}, .workers = {"h:2", "h:3", "h:4"}, .chief = "h:5"};
  LocalPlan plan = {.bin_dir = "/bin", .run_dir = "/run", .cluster_path = "/run/c.json"};
  plan.job_path = "/job";
  plan.summary_path = "/run/s.json";
  plan.cores = 8;
  const auto tasks = PlanTasks(cluster, plan);
  REQUIRE(tasks.size() == 5);
  CHECK(tasks[0].command.ToShell() ==
        "/bin/chief/chief --cluster=/run/c.json --job=/job --summary=/run/s.json");
  CHECK(tasks[1].command.ToShell() == "/bin/ps/ps --cluster=/run/c.json --task_index=0");
  CHECK(tasks[4].command.ToShell() ==
        "/bin/worker/worker --cluster=/run/c.json --task_index=2 --threads=2");
  CHECK(tasks[4].command.log_path == "/run/logs/worker-2.log");
  plan.cores = 2;
  CHECK_THAT(PlanTasks(cluster, plan)[2].command.ToShell(), Contains("--threads=1"));
}

}  // namespace
}  // namespace lockstep::deploy
