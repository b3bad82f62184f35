#include "tests/chaos/proxy_network.h"

#include <cstdlib>

#include "absl/time/time.h"

namespace lockstep::test {
namespace {

constexpr int64_t kSlow = 125'000;  // bytes a second: 1 Mbit/s
constexpr absl::Duration kLatency = absl::Milliseconds(50);
constexpr absl::Duration kJitter = absl::Milliseconds(20);

}  // namespace

ProxyNetwork::ProxyNetwork(const ClusterSpec& spec)
    : num_ps_(spec.Count(Role::kPs)),
      ports_(deploy::PortReservation::Take(num_ps_ + spec.Count(Role::kChief)).value()) {
  for (const Role role : {Role::kPs, Role::kChief}) {
    for (int i = 0; i < spec.Count(role); ++i) {
      proxies_.push_back(
          std::make_unique<FaultProxy>(spec.AddressOf(role, i), ListenAddressOf({role, i})));
    }
  }
}

size_t ProxyNetwork::NumberOf(const TaskId& task) const {
  return task.role == Role::kPs ? task.index : num_ps_ + task.index;
}

const std::string& ProxyNetwork::ListenAddressOf(const TaskId& task) const {
  return ports_.addresses()[NumberOf(task)];
}

FaultProxy* ProxyNetwork::ProxyOf(const TaskId& task) const {
  return proxies_[NumberOf(task)].get();
}

std::vector<std::string> ProxyNetwork::CommandOf(const TaskId& task,
                                                 std::vector<std::string> command) const {
  if (task.role != Role::kWorker) command.push_back("--listen=" + ListenAddressOf(task));
  return command;
}

std::string ProxyNetwork::StatusAddressOf(const TaskId& task) const {
  return ListenAddressOf(task);
}

void ProxyNetwork::Disturb(const Fault& fault, const FaultTasks& tasks) {
  FaultProxy* const proxy = ProxyOf(tasks.task);
  switch (fault.kind) {
    case FaultKind::kReset:
      return proxy->CutConnections();
    case FaultKind::kPartition:
      return proxy->StopAll(true);
    case FaultKind::kMuteRequests:
      return proxy->StopRequests(true);
    case FaultKind::kMuteReplies:
      return proxy->StopReplies(true);
    case FaultKind::kSlowLink:
      return proxy->SetBytesPerSecond(kSlow);
    case FaultKind::kLatency:
      return proxy->SetLatency(kLatency, kJitter);
    default:
      std::abort();  // not in AllFaults
  }
}

void ProxyNetwork::Restore(const Fault&, const FaultTasks& tasks) {
  FaultProxy* const proxy = ProxyOf(tasks.task);
  proxy->StopAll(false);
  proxy->SetBytesPerSecond(0);
  proxy->SetLatency(absl::ZeroDuration(), absl::ZeroDuration());
}

}  // namespace lockstep::test
