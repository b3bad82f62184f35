// Each task has a host of its own, in a network namespace: pairs of them can be cut off from each
// other, and a host from all.
#pragma once

#include <string>
#include <vector>

#include "tests/chaos/chaos_network.h"
#include "tests/support/virtual_network.h"

namespace lockstep::test {

// Once in a process that has entered a network of its own (VirtualNetwork::Enter).
class HostNetwork : public ChaosNetwork {
 public:
  // For tasks as those of `spec`.
  explicit HostNetwork(const ClusterSpec& spec);

  // The same tasks at the addresses of their hosts.
  ClusterSpec Spec() const;

  std::vector<std::string> CommandOf(const TaskId& task,
                                     std::vector<std::string> command) const override;
  std::string StatusAddressOf(const TaskId& task) const override;

 private:
  void Disturb(const Fault& fault, const FaultTasks& tasks) override;
  void Restore(const Fault& fault, const FaultTasks& tasks) override;
  // Ps, workers, chiefs.
  int HostOf(const TaskId& task) const;
  std::string AddressOf(const TaskId& task) const;
  // Of the hosts of two tasks.
  void SetBlocked(const Fault& fault, const FaultTasks& tasks, bool is_blocked);

  const int num_ps_;
  const int num_workers_;
  const int num_chiefs_;
  VirtualNetwork network_;
};

}  // namespace lockstep::test
