// Stores a version of a worker's variables at the parameter servers (StoreVersion).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/gate.h"
#include "common/base/retry_policy.h"
#include "common/client/session_types.h"
#include "common/tensor/tensor.h"
#include "common/transport/tensor_transport.h"
#include "worker/strategy/parameter_server/shard_group.h"

namespace lockstep::worker {

// What is stored of one part of a variable.
struct TensorToStore {
  VariableId variable;
  uint32_t shard = 0;
  std::string slot;  // empty: the value
  TensorView values;
  std::shared_ptr<const void> owner;  // keeps the values; null: the caller does until WhenIdle
};

// Thread-safe. One version at a time.
class VersionWriter {
 public:
  VersionWriter(const SessionOptions& options, const ShardGroupResources& resources);
  // Waits for calls in flight: Cancel ends them. Never in a callback.
  ~VersionWriter();

  // Begins to store: in pieces, one after the other to each shard, until each has answered. Not
  // while another version is being stored (CHECK).
  void Write(GlobalStep version, std::vector<TensorToStore> tensors);
  // Called when nothing is being stored, or cannot be: now or later.
  void WhenIdle(StatusCallback done);
  void Cancel();

 private:
  struct OfShard {
    std::vector<TensorToStore> tensors;
    size_t tensor = 0;    // the next piece begins in this one
    uint64_t offset = 0;  // at this byte
    RetryPolicy retry{CallKind::kPlain};
    bool is_open = false;  // not all has been answered
  };
  struct Message {
    StoreVersionRequest header;
    std::vector<OutgoingTensor> tensors;
    size_t tensor = 0;  // where the message after it begins
    uint64_t offset = 0;
  };

  // Sends the shard's next message.
  void Send(size_t shard);
  Message MakeMessage(size_t shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnAnswer(size_t shard, size_t tensor, uint64_t offset, const absl::Status& status);
  // The shard needs nothing more, or fails for good.
  void Close(size_t shard, const absl::Status& status);

  const SessionOptions options_;
  const ShardGroupResources resources_;
  const std::shared_ptr<Gate> gate_;  // held by calls in flight and the timer
  absl::Mutex mutex_;
  GlobalStep version_ ABSL_GUARDED_BY(mutex_);
  std::vector<OfShard> shards_ ABSL_GUARDED_BY(mutex_);
  size_t num_open_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<StatusCallback> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
