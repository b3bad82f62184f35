// Loopback, with a fault proxy before each ps and each chief. Workers, and the ports at which ps
// keep copies of each other, have none.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "deploy/cli/ports.h"
#include "tests/chaos/chaos_network.h"
#include "tests/support/fault_proxy.h"

namespace lockstep::test {

class ProxyNetwork : public ChaosNetwork {
 public:
  // Proxies listen at the addresses of `spec`.
  explicit ProxyNetwork(const ClusterSpec& spec);

  std::vector<std::string> CommandOf(const TaskId& task,
                                     std::vector<std::string> command) const override;
  std::string StatusAddressOf(const TaskId& task) const override;

 private:
  void Disturb(const Fault& fault, const FaultTasks& tasks) override;
  void Restore(const Fault& fault, const FaultTasks& tasks) override;
  // Of a ps or a chief, in ports_ and proxies_.
  size_t NumberOf(const TaskId& task) const;
  const std::string& ListenAddressOf(const TaskId& task) const;
  FaultProxy* ProxyOf(const TaskId& task) const;

  const int num_ps_;
  const deploy::PortReservation ports_;               // where ps and then chiefs listen
  std::vector<std::unique_ptr<FaultProxy>> proxies_;  // of the same
};

}  // namespace lockstep::test
