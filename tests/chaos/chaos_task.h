// One task of a job under chaos: a process that is started again when it ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/chaos/task_id.h"
#include "tests/support/process.h"

namespace lockstep::test {

// From one thread.
class ChaosTask {
 public:
  // `tolerated`: exit codes that are true at any time.
  ChaosTask(const TaskId& id, std::vector<std::string> command, std::set<int> tolerated = {});

  const TaskId& id() const { return id_; }
  const std::string& name() const { return name_; }

  // What the next start finds in its environment, once.
  void SetNextEnvironment(std::vector<std::string> environment);
  // When it is started again after an end that was asked for.
  enum class Return { kAsUp, kAtOnce };
  // Kills it, or tells it to end with SIGTERM: the end is no defect.
  void End(int signal, Return how = Return::kAsUp);
  void Signal(int signal) { process_->Signal(signal); }

  // Starts it again if it has ended: after a signal at once, else a second later, as `lockstep up`
  // does. Returns what was wrong with an end, if anything was.
  std::optional<std::string> Tend(absl::Duration now);
  // It runs, and no end that was asked for is still to come.
  bool is_up() { return process_->running() && !expected_.has_value(); }
  pid_t pid() const { return process_->pid(); }
  std::optional<int> Wait(absl::Duration timeout) { return process_->Wait(timeout); }

  // Whether it may end with this code at any time.
  bool Tolerates(int code) const { return tolerated_.contains(code); }

  // What all starts have written so far, without its first `offset` bytes.
  std::string LogFrom(size_t offset) const;

 private:
  void Start();

  const TaskId id_;
  const std::string name_;
  const std::vector<std::string> command_;
  const std::set<int> tolerated_;
  std::vector<std::string> environment_;  // of the next start
  std::string ended_;                     // logs of earlier starts
  std::unique_ptr<Process> process_;
  Return return_ = Return::kAsUp;
  std::optional<int> expected_;  // exit code of an end that was asked for
  absl::Duration ends_by_;       // the end that was asked for
  std::optional<absl::Duration> returns_at_;
};

}  // namespace lockstep::test
