// Faults of processes: they are killed, ended and stopped.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/chaos_task.h"
#include "tests/chaos/ongoing_fault.h"

namespace lockstep::test {

// The tasks outlive what is returned. Each is started again at once after SIGKILL.
std::unique_ptr<OngoingFault> KillTasks(const std::vector<ChaosTask*>& tasks);
std::unique_ptr<OngoingFault> TerminateTask(ChaosTask* task);
// Until it is healed.
std::unique_ptr<OngoingFault> StopTask(ChaosTask* task);
// Kills it. The first writes of its successor to shard files below `folder` fail with ENOSPC.
std::unique_ptr<OngoingFault> FillDisk(ChaosTask* task, const std::string& folder);

}  // namespace lockstep::test
