#include "common/config/cluster_change.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr Role kRoles[] = {Role::kChief, Role::kPs, Role::kWorker};

std::string TaskName(Role role, int index) { return absl::StrCat(Name(role), " ", index); }

absl::Status CheckNumberOfTasks(Role role, int before, int after, bool may_change) {
  if (before == after || may_change) return absl::OkStatus();
  const std::string remedy =
      role == Role::kWorker
          ? "keep the number of workers, or give the job sync.min_replicas, with which it changes"
          : absl::StrCat("keep the number of ", Name(role),
                         "; to change it, end the job and start it again with --resume");
  return absl::InvalidArgumentError(absl::StrCat(Name(role), ": the job runs with ", before,
                                                 " addresses, got ", after, ". Remedy: ", remedy));
}

// The task that had each address.
std::map<std::string, std::string> TasksByAddress(const ClusterSpec& spec) {
  std::map<std::string, std::string> tasks;
  for (const Role role : kRoles) {
    for (int i = 0; i < spec.Count(role); ++i) tasks[spec.AddressOf(role, i)] = TaskName(role, i);
  }
  return tasks;
}

}  // namespace

absl::Status CheckClusterChange(const ClusterSpec& before, const ClusterSpec& after,
                                const ClusterChangeRules& rules) {
  for (const Role role : kRoles) {
    const bool may_change = role == Role::kWorker && rules.workers_may_change;
    LOCKSTEP_RETURN_IF_ERROR(
        CheckNumberOfTasks(role, before.Count(role), after.Count(role), may_change));
  }
  if (rules.index >= after.Count(rules.role)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no ", TaskName(rules.role, rules.index),
                     ", which is this process. Remedy: keep its entry as long as it runs"));
  }
  const std::map<std::string, std::string> tasks = TasksByAddress(before);
  for (const Role role : kRoles) {
    for (int i = 0; i < after.Count(role); ++i) {
      const std::string& address = after.AddressOf(role, i);
      const auto had = tasks.find(address);
      if (had == tasks.end() || had->second == TaskName(role, i)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(TaskName(role, i), ": ", address, " was the address of ", had->second,
                       ". Remedy: keep the order of the tasks, and give a task that moves an "
                       "address that no task had"));
    }
  }
  const std::string& own = before.AddressOf(rules.role, rules.index);
  const std::string& own_after = after.AddressOf(rules.role, rules.index);
  if (own == own_after || rules.listens_elsewhere) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      TaskName(rules.role, rules.index), ", which is this process, listens on ", own, ", got ",
      own_after, ". Remedy: end it, and start it with this spec where ", own_after, " is"));
}

std::vector<std::string> DescribeClusterChange(const ClusterSpec& before,
                                               const ClusterSpec& after) {
  std::vector<std::string> lines;
  for (const Role role : kRoles) {
    const int common = std::min(before.Count(role), after.Count(role));
    for (int i = 0; i < common; ++i) {
      const std::string& from = before.AddressOf(role, i);
      const std::string& to = after.AddressOf(role, i);
      if (from != to) {
        lines.push_back(absl::StrCat(TaskName(role, i), " moved from ", from, " to ", to));
      }
    }
    for (int i = common; i < after.Count(role); ++i) {
      lines.push_back(
          absl::StrCat(TaskName(role, i), " (", after.AddressOf(role, i), ") was added"));
    }
    for (int i = common; i < before.Count(role); ++i) {
      lines.push_back(
          absl::StrCat(TaskName(role, i), " (", before.AddressOf(role, i), ") was removed"));
    }
  }
  return lines;
}

}  // namespace lockstep
