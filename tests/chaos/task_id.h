// Names a task of a job.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/config/cluster_spec.h"

namespace lockstep::test {

struct TaskId {
  Role role = Role::kWorker;
  int index = 0;

  friend bool operator==(const TaskId&, const TaskId&) = default;
};

// "ps 0", as logs of other tasks have it.
inline std::string NameOf(const TaskId& task) {
  return absl::StrCat(Name(task.role), " ", task.index);
}

// Whom a fault hits.
struct FaultTasks {
  TaskId task;
  std::optional<TaskId> peer;  // of a fault that has two
};

}  // namespace lockstep::test
