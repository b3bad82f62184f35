#include "tests/chaos/host_network.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace lockstep::test {
namespace {

// A host has all ports for its task.
constexpr int kPort = 2222;

}  // namespace

HostNetwork::HostNetwork(const ClusterSpec& spec)
    : num_ps_(spec.Count(Role::kPs)),
      num_workers_(spec.Count(Role::kWorker)),
      num_chiefs_(spec.Count(Role::kChief)),
      network_(num_ps_ + num_workers_ + num_chiefs_) {}

int HostNetwork::HostOf(const TaskId& task) const {
  switch (task.role) {
    case Role::kPs:
      return task.index;
    case Role::kWorker:
      return num_ps_ + task.index;
    case Role::kChief:
      return num_ps_ + num_workers_ + task.index;
  }
  std::abort();
}

std::string HostNetwork::AddressOf(const TaskId& task) const {
  return absl::StrCat(VirtualNetwork::AddressOf(HostOf(task)), ":", kPort);
}

ClusterSpec HostNetwork::Spec() const {
  ClusterSpec spec;
  for (int i = 0; i < num_ps_; ++i) spec.ps.push_back(AddressOf({Role::kPs, i}));
  for (int i = 0; i < num_workers_; ++i) spec.workers.push_back(AddressOf({Role::kWorker, i}));
  spec.chief = AddressOf({Role::kChief, 0});
  for (int i = 1; i < num_chiefs_; ++i) spec.other_chiefs.push_back(AddressOf({Role::kChief, i}));
  return spec;
}

std::vector<std::string> HostNetwork::CommandOf(const TaskId& task,
                                                std::vector<std::string> command) const {
  command.push_back("--insecure");
  return network_.CommandOn(HostOf(task), command);
}

std::string HostNetwork::StatusAddressOf(const TaskId& task) const { return AddressOf(task); }

void HostNetwork::SetBlocked(const Fault& fault, const FaultTasks& tasks, bool is_blocked) {
  const int from = HostOf(tasks.task), to = HostOf(*tasks.peer);
  network_.SetBlocked(from, to, is_blocked);
  if (fault.kind == FaultKind::kPairPartition) network_.SetBlocked(to, from, is_blocked);
}

void HostNetwork::Disturb(const Fault& fault, const FaultTasks& tasks) {
  switch (fault.kind) {
    case FaultKind::kHostGone:
      return network_.SetLink(HostOf(tasks.task), VirtualNetwork::Link::kDown);
    case FaultKind::kSlowLink:
      return network_.SetLink(HostOf(tasks.task), VirtualNetwork::Link::kOneMbit);
    case FaultKind::kPairPartition:
    case FaultKind::kOneWayPartition:
      return SetBlocked(fault, tasks, true);
    default:
      std::abort();  // not in FaultsOfHosts
  }
}

void HostNetwork::Restore(const Fault& fault, const FaultTasks& tasks) {
  if (tasks.peer.has_value()) return SetBlocked(fault, tasks, false);
  network_.SetLink(HostOf(tasks.task), VirtualNetwork::Link::kFast);
}

}  // namespace lockstep::test
