#include "deploy/cli/child_process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "common/base/exit_code.h"
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

TEST_CASE("a program that is waited for tells how it ended, and where its log is") {
  const test::TemporaryFolder folder;
  CHECK(RunToEnd(Shell("echo done", folder.Path("log"))).ok());
  CHECK(folder.Read("log") == "done\n");
  const absl::Status failed = RunToEnd(Shell("exit 78", folder.Path("log")));
  CHECK(failed.message() ==
        "ps 0: exit code 78 (cluster or job configuration wrong); log: " + folder.Path("log"));
  CHECK(absl::IsNotFound(
      RunToEnd({.name = "ps 0", .arguments = {"/no"}, .log_path = folder.Path("log")})));
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

TEST_CASE("signals that the launcher ignores reach the program") {
  const test::TemporaryFolder folder;
  for (const int ignored : {SIGINT, SIGTERM}) {
    const auto before = signal(ignored, SIG_IGN);
    const auto pid = Start(Shell("kill -" + std::to_string(ignored) + " $$; exit 3",
                                 folder.Path(std::to_string(ignored))));
    signal(ignored, before);
    REQUIRE(pid.ok());
    CHECK(ExitCodeOf(Wait(*pid)) == 128 + ignored);
  }
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

TEST_CASE("a log is for its user and group alone, whatever the umask, and a new file") {
  const test::TemporaryFolder folder;
  const std::string path = folder.Write("log", "of an earlier run");
  std::filesystem::permissions(path, std::filesystem::perms::all);
  std::filesystem::create_hard_link(path, folder.Path("other"));
  const mode_t before = umask(0);
  const auto pid = Start(Shell("echo new", path));
  umask(before);
  REQUIRE(pid.ok());
  Wait(*pid);
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0640);
  CHECK(folder.Read("log") == "new\n");
  CHECK(folder.Read("other") == "of an earlier run");
}

TEST_CASE("nothing is started where the log's path is a link or a folder, and that stays") {
  const test::TemporaryFolder folder;
  const std::string target = folder.Write("target", "precious"), link = folder.Path("log");
  std::filesystem::create_symlink(target, link);
  const absl::Status refused = Start(Shell("echo lost", link)).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kCannotCreate);
  CHECK_THAT(std::string(refused.message()),
             Contains(link) && Contains("a symbolic link") && Contains("Remedy"));
  CHECK(folder.Read("target") == "precious");
  std::filesystem::create_symlink(folder.Path("nowhere"), folder.Path("dangling"));
  CHECK_FALSE(Start(Shell("echo lost", folder.Path("dangling"))).ok());
  CHECK_FALSE(std::filesystem::exists(folder.Path("nowhere")));
  CHECK(ExitCodeFor(Start(Shell("true", folder.path())).status()) == ExitCode::kCannotCreate);
}

TEST_CASE("free addresses are on loopback, different, and outside the outgoing range") {
  const auto ports = PortReservation::Take(50);
  REQUIRE(ports.ok());
  std::vector<std::string> sorted = ports->addresses();
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted.size() == 50);
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  for (const std::string& address : sorted) {
    CHECK_THAT(address, Catch::Matchers::StartsWith("127.0.0.1:"));
    CHECK(std::stoi(address.substr(10)) >= 20000);
    CHECK(std::stoi(address.substr(10)) < 32768);
  }
}

TEST_CASE("launchers that look at the same ports at once get different ones") {
  std::vector<PortReservation> launchers;
  std::set<std::string> all;
  for (int i = 0; i < 10; ++i) {
    auto ports = PortReservation::TakeFrom(25000, 5);
    REQUIRE(ports.ok());
    all.insert(ports->addresses().begin(), ports->addresses().end());
    launchers.push_back(*std::move(ports));
  }
  CHECK(all.size() == 50);
}

TEST_CASE("more ports than there are is UNAVAILABLE, and none of them stays reserved") {
  // There are 12,768 in all.
  const absl::Status status = PortReservation::Take(12769).status();
  CHECK(absl::IsUnavailable(status));
  CHECK_THAT(std::string(status.message()), Contains("12769") && Contains("Remedy"));
  CHECK(PortReservation::Take(50).ok());
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

TEST_CASE("of two planned chiefs the second stands by, and so does each that is started again") {
  const ClusterSpec cluster = {
      .ps = {"h:1"}, .workers = {"h:2"}, .chief = "h:5", .other_chiefs = {"h:6"}};
  LocalPlan plan = {.bin_dir = "/bin", .run_dir = "/run", .cluster_path = "/c"};
  plan.job_path = "/job";
  plan.summary_path = "/s";
  plan.start_flag = "--fresh";
  const auto tasks = PlanTasks(cluster, plan);
  REQUIRE(tasks.size() == 4);
  CHECK(tasks[0].command.name == "chief");
  CHECK(tasks[1].command.name == "chief 1");
  CHECK(tasks[1].command.log_path == "/run/logs/chief-1.log");
  CHECK(tasks[0].command.ToShell() ==
        "/bin/chief/chief --cluster=/c --task_index=0 --job=/job --summary=/s --fresh");
  CHECK(tasks[0].successor.ToShell() ==
        "/bin/chief/chief --cluster=/c --task_index=0 --job=/job --summary=/s --standby");
  CHECK(tasks[1].command.ToShell() ==
        "/bin/chief/chief --cluster=/c --task_index=1 --job=/job --summary=/s --standby");
  CHECK(tasks[1].successor.ToShell() == tasks[1].command.ToShell());
  CHECK_FALSE(tasks[1].repeats_start);
}

TEST_CASE("a planned chief repeats a start that its successor would not make") {
  const ClusterSpec cluster = {.ps = {"h:1"}, .workers = {"h:2"}, .chief = "h:5"};
  LocalPlan plan = {.bin_dir = "/bin", .run_dir = "/run", .cluster_path = "/c"};
  const std::vector<std::pair<std::string, bool>> repeated = {
      {"", false}, {"--resume", false}, {"--fresh", true}, {"--restore=/ckpt-1", true}};
  for (const auto& [flag, repeats] : repeated) {
    plan.start_flag = flag;
    const Task chief = PlanTasks(cluster, plan)[0];
    CHECK(chief.successor.arguments.back() == "--resume");
    CHECK(chief.repeats_start == repeats);
  }
}

}  // namespace
}  // namespace lockstep::deploy
