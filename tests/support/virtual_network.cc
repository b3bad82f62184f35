#include "tests/support/virtual_network.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr char kReady[] = "the host is ready";
constexpr char kSwitch[] = "switch0";
constexpr int kOwnNumber = 1;  // the last byte of an address; of host 0 it is the next one
// Rules of lower numbers are looked at first. Those of senders must come before the rule of local
// addresses, which is number 0 at first.
constexpr int kSenderRule = 100;
constexpr int kLocalRule = 1000;

// `tc` is where only the PATH of root leads.
std::vector<std::string> ShellCommand(const std::string& script) {
  return {"/bin/sh", "-ec", "PATH=$PATH:/usr/sbin:/sbin; " + script};
}

Ended Shell(const std::string& script) { return RunToEnd(ShellCommand(script), kPatience); }

void MustRun(const std::vector<std::string>& command) {
  const Ended ended = RunToEnd(command, kPatience);
  if (ended.exit_code == 0) return;
  std::fprintf(stderr, "%s: expected exit code 0, got %d: %s\n",
               absl::StrJoin(command, " ").c_str(), ended.exit_code, ended.output.c_str());
  std::abort();
}

void MustShell(const std::string& script) { MustRun(ShellCommand(script)); }

// Makes the calling process root of a user namespace, who may make networks.
bool EnterUserNamespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return ::geteuid() == 0;
}

std::string SwitchLink(int host) { return absl::StrCat("host", host); }

int NumberOf(int host) { return kOwnNumber + 1 + host; }

std::string Address(int number) { return absl::StrCat("10.77.0.", number); }

std::string Hardware(int number) { return absl::StrFormat("02:00:00:00:00:%02x", number); }

// A look-up that nobody answers would end the silence after 3 s: the kernel tells the sender.
std::string KnowCommand(int number, const std::string& device) {
  return absl::StrCat("ip neigh add ", Address(number), " lladdr ", Hardware(number), " dev ",
                      device, " nud permanent");
}

// `change`: "add" or "del".
std::string BlockCommand(const std::string& change, int from) {
  return absl::StrCat("ip rule ", change, " prio ", kSenderRule + from, " from ",
                      Address(NumberOf(from)), " type blackhole");
}

std::string QueueCommand(const std::string& device, VirtualNetwork::Link link) {
  switch (link) {
    case VirtualNetwork::Link::kFast:
      return absl::StrCat("tc qdisc del dev ", device, " root");
    case VirtualNetwork::Link::kOneMbit:
      return absl::StrCat("tc qdisc replace dev ", device,
                          " root tbf rate 1mbit burst 32kbit latency 400ms");
    case VirtualNetwork::Link::kDown:
      // A link that is set down takes its routes along, and the host's own kernel tells the sender.
      return absl::StrCat("tc qdisc replace dev ", device, " root blackhole");
  }
  std::abort();
}

}  // namespace

absl::Status VirtualNetwork::Enter() {
  // In children first: the caller must not be left without a network.
  const std::string trial =
      absl::StrCat("ip link add near type veth peer name far; ip link add name ", kSwitch,
                   " type bridge; ", BlockCommand("add", 0), "; ",
                   QueueCommand("near", Link::kOneMbit), "; ", QueueCommand("near", Link::kDown));
  const auto try_with = [&](const std::string& rights) {
    return Shell(absl::StrCat("exec unshare ", rights, " --net /bin/sh -ec '", trial, "'"));
  };
  const bool has_rights = try_with("").exit_code == 0;
  const Ended tried = has_rights ? Ended{.exit_code = 0} : try_with("--map-root-user");
  const bool enters =
      tried.exit_code == 0 && (has_rights || EnterUserNamespace()) && ::unshare(CLONE_NEWNET) == 0;
  if (!enters) {
    return WithExitCode(
        absl::PermissionDeniedError(absl::StrCat(
            "cannot make network namespaces: expected a kernel that permits them, with veth, "
            "bridge, policy routing and tbf, and the programs ip and tc; got: ",
            tried.exit_code == 0 ? "no namespace for this process" : tried.output,
            ". Remedy: install iproute2, and run as root or permit user namespaces")),
        ExitCode::kNotPermitted);
  }
  MustShell("ip link set lo up");
  return absl::OkStatus();
}

VirtualNetwork::VirtualNetwork(int num_hosts) {
  MustShell(absl::StrCat("ip link add name ", kSwitch, " address ", Hardware(kOwnNumber),
                         " type bridge; ip addr add ", OwnAddress(), "/24 dev ", kSwitch,
                         "; ip link set ", kSwitch, " up"));
  for (int host = 0; host < num_hosts; ++host) {
    hosts_.push_back(std::make_unique<Process>(
        std::vector<std::string>{"/usr/bin/unshare", "--net", "/bin/sh", "-c",
                                 absl::StrCat("echo ", kReady, "; exec sleep infinity")}));
  }
  for (int host = 0; host < num_hosts; ++host) {
    if (!hosts_[host]->WaitForOutput(kReady, kPatience)) std::abort();
    Plug(host);
  }
}

void VirtualNetwork::Plug(int host) {
  const int number = NumberOf(host);
  const std::string link = SwitchLink(host);
  MustShell(absl::StrCat("ip link add ", link, " type veth peer name eth0 address ",
                         Hardware(number), " netns ", hosts_[host]->pid(), "; ip link set ", link,
                         " master ", kSwitch, " up; ", KnowCommand(number, kSwitch)));
  std::string script = absl::StrCat("ip link set lo up; ip addr add ", Address(number),
                                    "/24 dev eth0; ip link set eth0 up; ip rule add prio ",
                                    kLocalRule, " lookup local; ip rule del prio 0");
  for (int other = kOwnNumber; other <= NumberOf(hosts_.size() - 1); ++other) {
    if (other != number) absl::StrAppend(&script, "; ", KnowCommand(other, "eth0"));
  }
  MustRunOn(host, script);
}

std::string VirtualNetwork::OwnAddress() { return Address(kOwnNumber); }

std::string VirtualNetwork::AddressOf(int host) { return Address(NumberOf(host)); }

std::vector<std::string> VirtualNetwork::CommandOn(int host,
                                                   const std::vector<std::string>& command) const {
  std::vector<std::string> on_host = {"/usr/bin/nsenter", "--target",
                                      absl::StrCat(hosts_[host]->pid()), "--net"};
  on_host.insert(on_host.end(), command.begin(), command.end());
  return on_host;
}

void VirtualNetwork::MustRunOn(int host, const std::string& script) const {
  MustRun(CommandOn(host, ShellCommand(script)));
}

void VirtualNetwork::SetBlocked(int from, int to, bool is_blocked) {
  MustRunOn(to, BlockCommand(is_blocked ? "add" : "del", from));
}

void VirtualNetwork::SetLink(int host, Link link) {
  MustShell(QueueCommand(SwitchLink(host), link));
  MustRunOn(host, QueueCommand("eth0", link));
}

}  // namespace lockstep::test
