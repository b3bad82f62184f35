// A replica's training, step after step (docs/architecture.md, "Life of a gradient"). Synchronous:
// a token, whose number is the next stamp, stands between two steps. Asynchronous: nothing does.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/monotonic_wait.h"
#include "common/client/ps_client.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {

struct TrainingLoopOptions {
  StepRunnerOptions step;
  GlobalStep start_step;
  int64_t max_steps = std::numeric_limits<int64_t>::max();  // of the job
  uint32_t num_replicas = 1;
  std::vector<std::string> shard_names;  // "ps 1 (host:port)", for messages
};

// Run is called once, on a thread that it keeps until the end; Stop from any other.
class TrainingLoop {
 public:
  TrainingLoop(TrainingLoopOptions options, const StepParts& parts)
      : options_(std::move(options)), parts_(parts) {}

  // Trains until the step shard says that the job is done (OK) or something cannot be repaired by
  // repeating: then all calls to the shards are cancelled. CANCELLED after Stop.
  absl::Status Run();
  // Ends Run before its next step or wait for a token. Once.
  void Stop() { stop_.Notify(); }

 private:
  absl::Status RunSynchronous(StepRunner* runner);
  absl::Status RunAsynchronous(StepRunner* runner);
  // Which of the shards share memory with this worker has to be known before the first tensor where
  // it decides how tensors travel: otherwise a run would depend on when the answer comes.
  absl::Status ShareMemory();
  // INTERNAL: for no step of the job. No data could be read for it.
  absl::Status CheckToken(const DequeueTokenReply& token) const;
  // Which came with the step's verdicts, or comes now.
  absl::StatusOr<DequeueTokenReply> NextToken(StepRunner* runner);

  const TrainingLoopOptions options_;
  const StepParts parts_;
  MonotonicNotification stop_;
  DequeueSeq dequeue_seq_;  // of the step under way; of the thread in Run
};

}  // namespace lockstep::worker
