// Asks for the status of the job again and again, in a thread of its own, so that the launcher
// never waits for an answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/monotonic_wait.h"
#include "proto/status.pb.h"

namespace lockstep::rpc {
class Credentials;
}

namespace lockstep::deploy {

// Thread-safe. Errors are passed over: a process that starts or ends does not answer.
class StatusPoller {
 public:
  // `chiefs`: their addresses; one of them commands. `credentials` may be null.
  StatusPoller(std::vector<std::string> chiefs,
               std::shared_ptr<const rpc::Credentials> credentials);
  // Waits for a question that is under way, at most a second.
  ~StatusPoller();

  // The last answer of a chief that commands; nothing before the first one.
  std::optional<ProcessStatus> Latest() const;

 private:
  void Poll();
  // Asks one after the other, beginning with the one that commanded last.
  std::optional<ProcessStatus> Ask();
  bool IsStopping() const;

  const std::vector<std::string> chiefs_;
  size_t commander_ = 0;  // of the thread
  const std::shared_ptr<const rpc::Credentials> credentials_;
  mutable absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  MonotonicCondVar stopped_;
  std::optional<ProcessStatus> latest_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the others
};

}  // namespace lockstep::deploy
