// A host of its own for one process of a test: a network namespace at the end of a cable that can
// be pulled. Nothing answers then: no FIN, no RST, no acknowledgment, no ICMP.
#pragma once

#include <string>
#include <vector>

#include "tests/support/process.h"

namespace lockstep::test {

// Thread-compatible.
class VanishingHost {
 public:
  // Moves the calling process, and all that it starts from now on, into a network of its own, in
  // which such a host can be. Call before any thread is started. False: the system does not permit
  // that, or has no `ip`, and nothing has changed.
  static bool EnterOwnNetwork();

  // The addresses of both ends of the cable: of the calling process and of the host. Once in an own
  // network; aborts where that fails.
  VanishingHost();
  const std::string& near_address() const { return near_; }
  const std::string& far_address() const { return far_; }

  // The command that starts `command` on the host once Connect is called.
  static std::vector<std::string> Wrap(const std::vector<std::string>& command);
  // Brings the cable to the process of a wrapped command.
  void Connect(Process* process);
  // Pulls the cable. The process runs on and reaches nobody.
  void Vanish(const Process& process);

 private:
  const std::string near_ = "10.77.0.1";
  const std::string far_ = "10.77.0.2";
};

}  // namespace lockstep::test
