#include "tests/integration/slurm_cluster.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kNextLook = absl::Milliseconds(20);
constexpr char kController[] = "/usr/sbin/slurmctld";
constexpr char kNode[] = "/usr/sbin/slurmd";

// An account of every Debian, for Slurm in a user namespace.
constexpr char kUser[] = "daemon";
constexpr int kUserId = 1;

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return std::vector<std::string>(absl::StrSplit(name, '.')).front();
}

// A slurmd that runs as root sets the groups of its jobs. The user namespace of an ordinary user
// denies that, and so does the one of Bazel's sandbox.
bool AreGroupsDenied() {
  std::ifstream file("/proc/self/setgroups");
  std::string word;
  file >> word;
  return word == "deny";
}

// auth/none: no munged is needed. proctrack/pgid and the empty folder: no cgroups, no /sys. The
// timeouts: a dead node is noticed after some 8 s, with Slurm's own after 5 minutes.
constexpr char kConfiguration[] = R"(ClusterName=test
SlurmctldPort=17000
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
MailProg=/bin/true
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
SlurmdTimeout=5
MessageTimeout=2
TCPTimeout=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
)";

}  // namespace

SlurmCluster::SlurmCluster(int num_nodes) {
  for (const char* const program : {kController, kNode, "/usr/bin/sbatch"}) {
    INFO(program << ": not found. Remedy: apt-get install slurmctld slurmd slurm-client");
    REQUIRE(::access(program, X_OK) == 0);
  }
  const absl::Status entered = VirtualNetwork::Enter();
  INFO(entered.ToString());
  REQUIRE(entered.ok());
  is_in_user_namespace_ = AreGroupsDenied();
  network_.emplace(num_nodes);
  WriteConfiguration(num_nodes);
  controller_ = std::make_unique<Process>(
      AsUser({kController, "-D", "-c", "-f", folder_.Path("slurm.conf")}));
  for (int i = 0; i < num_nodes; ++i) nodes_.push_back(StartNode(i));
  const absl::Time deadline = absl::Now() + kPatience;
  std::string idle;
  while (idle != absl::StrCat(num_nodes)) {
    if (absl::Now() > deadline || controller_->Wait(kNextLook)) FAIL(Logs());
    // Fails while the controller starts.
    const std::vector<std::string> count = {"/usr/bin/sinfo", "--noheader", "--states=idle",
                                            "--format=%D"};
    idle = RunToEnd(AsUser(count), kPatience, {"SLURM_CONF=" + folder_.Path("slurm.conf")}).output;
    absl::StripTrailingAsciiWhitespace(&idle);
  }
}

void SlurmCluster::WriteConfiguration(int num_nodes) const {
  const std::string user = is_in_user_namespace_ ? kUser : "root";
  const std::string host = HostName();
  std::string text = absl::StrCat(
      kConfiguration, "SlurmctldHost=", host, "(", VirtualNetwork::OwnAddress(),
      ")\nSlurmUser=", user, "\nSlurmdUser=", user, "\nStateSaveLocation=", folder_.path(),
      "\nSlurmdSpoolDir=", folder_.path(), "/%n\nSlurmctldPidFile=", folder_.path(),
      "/controller.pid\nSlurmdPidFile=", folder_.path(), "/%n.pid\n");
  for (int i = 0; i < num_nodes; ++i) {
    absl::StrAppend(&text, "NodeName=n", i + 1, " NodeHostname=", host,
                    " NodeAddr=", VirtualNetwork::AddressOf(i), " Port=17001 CPUs=2\n");
    std::filesystem::create_directory(folder_.Path(absl::StrCat("n", i + 1)));
  }
  std::filesystem::create_directory(folder_.Path("cgroup"));
  folder_.Write("slurm.conf", text);
  folder_.Write(
      "cgroup.conf",
      absl::StrCat("CgroupPlugin=cgroup/v1\nCgroupMountpoint=", folder_.Path("cgroup"), "\n"));
}

std::vector<std::string> SlurmCluster::AsUser(std::vector<std::string> command) const {
  if (!is_in_user_namespace_) return command;
  std::vector<std::string> as_user = {"/usr/bin/unshare", "--user",
                                      absl::StrCat("--map-user=", kUserId),
                                      absl::StrCat("--map-group=", kUserId)};
  as_user.insert(as_user.end(), command.begin(), command.end());
  return as_user;
}

std::unique_ptr<Process> SlurmCluster::StartNode(int node) const {
  const std::vector<std::string> slurmd =
      AsUser({kNode, "-D", "-N", absl::StrCat("n", node + 1), "-f", folder_.Path("slurm.conf")});
  // The shell is the namespace's process 1. It waits for orphans, too: a dead process that nobody
  // waits for is one that Slurm cannot kill, and the node is drained.
  return std::make_unique<Process>(
      network_->CommandOn(node, {"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "/bin/sh",
                                 "-c", absl::StrCat(absl::StrJoin(slurmd, " "), " & wait")}));
}

std::string SlurmCluster::Run(std::vector<std::string> command,
                              std::vector<std::string> environment) {
  environment.push_back("SLURM_CONF=" + folder_.Path("slurm.conf"));
  Ended ended = RunToEnd(AsUser(command), kPatience, std::move(environment));
  if (ended.exit_code != 0) {
    FAIL(absl::StrJoin(command, " ")
         << ": exit code " << ended.exit_code << ": " << ended.output << Logs());
  }
  absl::StripTrailingAsciiWhitespace(&ended.output);
  return ended.output;
}

std::string SlurmCluster::JobField(const std::string& job, const std::string& field) {
  const std::string line = Run({"/usr/bin/scontrol", "--oneliner", "show", "job", job});
  for (absl::string_view word : absl::StrSplit(line, ' ')) {
    if (absl::ConsumePrefix(&word, absl::StrCat(field, "="))) return std::string(word);
  }
  return "";
}

void SlurmCluster::AwaitJobField(const std::string& job, const std::string& field,
                                 const std::string& value, absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  std::string now;
  while ((now = JobField(job, field)) != value) {
    if (absl::Now() > deadline || controller_->Wait(kNextLook)) {
      FAIL("job " << job << ": expected " << field << " " << value << ", got " << now << "\n"
                  << Logs());
    }
  }
}

void SlurmCluster::KillNode(const std::string& node) {
  int number = 0;
  REQUIRE(absl::SimpleAtoi(absl::StripPrefix(node, "n"), &number));
  nodes_.at(number - 1)->Signal(SIGKILL);
  nodes_.at(number - 1)->Wait(kPatience);
}

std::string SlurmCluster::Logs() {
  std::string logs = absl::StrCat("controller:\n", controller_->Output());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    absl::StrAppend(&logs, "node n", i + 1, ":\n", nodes_[i]->Output());
  }
  return logs;
}

}  // namespace lockstep::test
