// Hosts of a test: network namespaces, each with an address and a link of its own, joined by a
// switch in the namespace of the calling process. What is dropped is dropped in silence: no FIN, no
// RST, no ICMP.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/process.h"

namespace lockstep::test {

// Thread-compatible.
class VirtualNetwork {
 public:
  // Moves the calling process, and all that it starts from now on, into a network namespace of its
  // own. Call before any thread is started. PERMISSION_DENIED (exit code 77) where the system does
  // not permit that, or has no `ip` or `tc`: nothing has changed then.
  static absl::Status Enter();

  // Once in a process that has entered. Aborts where a host cannot be made.
  explicit VirtualNetwork(int num_hosts);

  // Of the calling process: it has a host's place at the switch.
  static std::string OwnAddress();
  static std::string AddressOf(int host);
  // The command that runs `command` on the host. The process that it starts becomes that of
  // `command`, so signals reach it. The host outlives it.
  std::vector<std::string> CommandOn(int host, const std::vector<std::string>& command) const;

  // Whether packets from one host to another are dropped.
  void SetBlocked(int from, int to, bool is_blocked);
  // Of a host's link, in both directions.
  enum class Link { kFast, kOneMbit, kDown };
  void SetLink(int host, Link link);

 private:
  // Gives the host its link and its address.
  void Plug(int host);
  // Aborts where it fails.
  void MustRunOn(int host, const std::string& script) const;

  std::vector<std::unique_ptr<Process>> hosts_;  // each keeps a namespace alive
};

}  // namespace lockstep::test
