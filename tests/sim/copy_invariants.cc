#include "tests/sim/copy_invariants.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::sim {

std::optional<std::string> CopyInvariants::Check(const std::vector<SimPsServer*>& servers) {
  TakeHistory();
  std::optional<std::string> broken = CheckSteps(servers);
  for (; !broken && pulled_ < history_->pulled.size(); ++pulled_) {
    const Pulled& pulled = history_->pulled[pulled_];
    broken = CheckShown(pulled, servers);
    if (!broken) broken = CheckValues(pulled);
  }
  return broken;
}

void CopyInvariants::TakeHistory() {
  for (; views_ < history_->views.size(); ++views_) {
    const AcceptedView& view = history_->views[views_];
    copy_addresses_[view.ps.incarnation] = view.copy_address;
  }
  for (; means_ < history_->means.size(); ++means_) {
    const TakenMean& mean = history_->means[means_];
    GlobalStep& last =
        last_means_.try_emplace({mean.server, mean.epoch, mean.variable}).first->second;
    last = std::max(last, mean.step);
  }
}

std::optional<GlobalStep> CopyInvariants::LastMean(Incarnation copy, Epoch epoch,
                                                   uint32_t variable) const {
  const auto found = last_means_.find({copy, epoch, variable});
  if (found == last_means_.end()) return std::nullopt;
  return found->second;
}

const SimPsServer* CopyInvariants::FindCopy(Incarnation of,
                                            const std::vector<SimPsServer*>& servers) const {
  const auto address = copy_addresses_.find(of);
  if (address == copy_addresses_.end() || address->second.empty()) return nullptr;
  // A ps has one address for all its processes: the newest one has the copy, if any has it.
  const auto copy = std::find_if(servers.rbegin(), servers.rend(), [&](const SimPsServer* server) {
    return server->address() == address->second;
  });
  if (copy == servers.rend()) return nullptr;
  const ps::ShardState state = (*copy)->shard().GetView();
  return state.has_variables && !state.awaits_state ? *copy : nullptr;
}

std::optional<std::string> CopyInvariants::CheckSteps(
    const std::vector<SimPsServer*>& servers) const {
  for (const SimPsServer* const server : servers) {
    if (!server->is_alive()) continue;
    const ps::ShardState primary = server->shard().GetView();
    if (!primary.has_copy || primary.is_copy) continue;
    const SimPsServer* const copy = FindCopy(server->id().incarnation, servers);
    if (copy == nullptr) continue;
    const ps::ShardState copied = copy->shard().GetView();
    if (copied.epoch != primary.epoch || copied.shard_step >= primary.shard_step) continue;
    return absl::StrCat("copy: shard ", server->id().shard, " has closed all steps before ",
                        primary.shard_step.value(), ", its copy those before ",
                        copied.shard_step.value());
  }
  return std::nullopt;
}

std::optional<std::string> CopyInvariants::CheckShown(
    const Pulled& pulled, const std::vector<SimPsServer*>& servers) const {
  const SimPsServer* const copy = FindCopy(pulled.server, servers);
  if (copy == nullptr) return std::nullopt;
  const ps::ShardState state = copy->shard().GetView();
  if (state.epoch != pulled.epoch || pulled.version <= state.start_step) return std::nullopt;
  const std::optional<GlobalStep> mean =
      LastMean(copy->id().incarnation, pulled.epoch, pulled.variable);
  if (mean.has_value() && mean->next() >= pulled.version) return std::nullopt;
  return absl::StrCat("copy: version ", pulled.version.value(), " of variable ", pulled.variable,
                      " is shown, and the copy lacks its mean");
}

std::optional<std::string> CopyInvariants::CheckValues(const Pulled& pulled) {
  std::map<size_t, float>& values = values_[{pulled.epoch, pulled.variable, pulled.version}];
  for (size_t i = 0; i < pulled.values.size(); ++i) {
    const auto [known, is_new] = values.try_emplace(pulled.first + i, pulled.values[i]);
    if (is_new || known->second == pulled.values[i]) continue;
    return absl::StrCat("served: variable ", pulled.variable, " in version ",
                        pulled.version.value(), " has two values");
  }
  return std::nullopt;
}

}  // namespace lockstep::sim
