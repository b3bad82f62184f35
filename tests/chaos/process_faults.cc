#include "tests/chaos/process_faults.h"

#include <signal.h>

#include "absl/strings/str_cat.h"

namespace lockstep::test {
namespace {

class EndedTasks : public OngoingFault {
 public:
  EndedTasks(const std::vector<ChaosTask*>& tasks, int signal) {
    for (ChaosTask* const task : tasks) task->End(signal);
  }
};

class StoppedTask : public OngoingFault {
 public:
  explicit StoppedTask(ChaosTask* task) : task_(task) { task_->Signal(SIGSTOP); }
  void Heal() override { task_->Signal(SIGCONT); }

 private:
  ChaosTask* const task_;
};

}  // namespace

std::unique_ptr<OngoingFault> KillTasks(const std::vector<ChaosTask*>& tasks) {
  return std::make_unique<EndedTasks>(tasks, SIGKILL);
}

std::unique_ptr<OngoingFault> TerminateTask(ChaosTask* task) {
  return std::make_unique<EndedTasks>(std::vector<ChaosTask*>{task}, SIGTERM);
}

std::unique_ptr<OngoingFault> StopTask(ChaosTask* task) {
  return std::make_unique<StoppedTask>(task);
}

std::unique_ptr<OngoingFault> FillDisk(ChaosTask* task, const std::string& folder) {
  const std::string fault_of_write = absl::StrCat(folder, ",write,-shard-,");
  task->SetNextEnvironment({"LD_PRELOAD=" + Binary("tests/support/preloaded_disk_faults.so"),
                            absl::StrCat("LOCKSTEP_DISK_FAULTS=", fault_of_write, "1,ENOSPC;",
                                         fault_of_write, "2,ENOSPC")});
  return KillTasks({task});
}

}  // namespace lockstep::test
