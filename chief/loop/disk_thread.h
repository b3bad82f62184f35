// Work that waits for the disk, on a thread of its own: the executor's thread goes on meanwhile.
//
// Lives on the executor's thread.
#pragma once

#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "chief/loop/executor.h"
#include "common/base/callback.h"

namespace lockstep::chief {

class DiskThread {
 public:
  // `is_waited_for`: the work is done on the executor's thread. Simulated time has no other.
  // `executor` outlives the thread.
  DiskThread(Executor* executor, bool is_waited_for)
      : executor_(executor), is_waited_for_(is_waited_for) {}
  // Waits for the disk.
  ~DiskThread();

  // Only when the `done` of the last work has been called. `done` is called once with what `work`
  // returns, also before the call returns; never once the executor has ended.
  void Run(absl::AnyInvocable<absl::Status()> work, StatusCallback done);

 private:
  Executor* const executor_;
  const bool is_waited_for_;
  std::thread thread_;
};

}  // namespace lockstep::chief
