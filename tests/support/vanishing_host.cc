#include "tests/support/vanishing_host.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);
// Whose link is down needs no look-up: otherwise a silent host becomes an unreachable one after 3
// s.
constexpr char kFarHardware[] = "02:00:00:00:00:02";
constexpr char kReady[] = "waits for its cable";

bool Shell(const std::string& script) {
  return RunToEnd({"/bin/sh", "-c", script}, kPatience).exit_code == 0;
}

void MustShell(const std::string& script) {
  if (!Shell(script)) std::abort();
}

std::string OnHostOf(const Process& process, const std::string& command) {
  return absl::StrCat("nsenter --target ", process.pid(), " --net ", command);
}

// Root of a user namespace may make networks.
bool BecomeRoot() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (user == 0) return true;
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return ::geteuid() == 0;
}

}  // namespace

bool VanishingHost::EnterOwnNetwork() {
  // Of a child first: the caller must not be left without a network.
  if (!Shell("unshare --map-root-user --net ip link add near type veth peer name far"))
    return false;
  return BecomeRoot() && ::unshare(CLONE_NEWNET) == 0 && Shell("ip link set lo up");
}

VanishingHost::VanishingHost() {
  MustShell(absl::StrCat("ip link add near type veth peer name far address ", kFarHardware,
                         " && ip addr add ", near_, "/24 dev near && ip link set near up",
                         " && ip neigh add ", far_, " lladdr ", kFarHardware,
                         " dev near nud permanent"));
}

std::vector<std::string> VanishingHost::Wrap(const std::vector<std::string>& command) {
  std::vector<std::string> wrapped = {
      "/usr/bin/unshare", "--net", "/bin/sh", "-c",
      absl::StrCat("ip link set lo up; echo ", kReady,
                   "; until ip addr show dev far 2>&1 | grep -q 'inet 10'; do sleep 0.01; done; "
                   "exec \"$0\" \"$@\"")};
  wrapped.insert(wrapped.end(), command.begin(), command.end());
  return wrapped;
}

void VanishingHost::Connect(Process* process) {
  if (!process->WaitForOutput(kReady, kPatience)) std::abort();
  MustShell(absl::StrCat("ip link set far netns ", process->pid(), " && ",
                         OnHostOf(*process, "ip link set far up"), " && ",
                         OnHostOf(*process, absl::StrCat("ip addr add ", far_, "/24 dev far"))));
}

void VanishingHost::Vanish(const Process& process) {
  MustShell(OnHostOf(process, "ip link set far down"));
}

}  // namespace lockstep::test
