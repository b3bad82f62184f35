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
#include "common/client/status_reader.h"
#include "proto/status.pb.h"

namespace lockstep::deploy {

// Thread-safe. Errors are passed over: a process that starts or ends does not answer.
class StatusPoller {
 public:
  // `chiefs`: their addresses; one of them commands. `credentials` may be null.
  StatusPoller(const std::vector<std::string>& chiefs,
               std::shared_ptr<const rpc::Credentials> credentials);
  // Waits for a question that is under way, at most a second.
  ~StatusPoller();

  // The last answer of a chief that commands; nothing before the first one.
  std::optional<ProcessStatus> Latest() const;
  // Whether any answer has told of training.
  bool HasBegun() const;

 private:
  void Poll();
  // Asks one after the other, beginning with the one that commanded last.
  std::optional<ProcessStatus> Ask();
  bool IsStopping() const;

  const std::shared_ptr<const rpc::Credentials> credentials_;
  // Of the thread: one for each chief, and which commanded last.
  std::vector<std::unique_ptr<StatusReader>> chiefs_;
  size_t commander_ = 0;
  mutable absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  MonotonicCondVar stopped_;
  std::optional<ProcessStatus> latest_ ABSL_GUARDED_BY(mutex_);
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lockstep::deploy
