// Reads the version that a replicated job starts at from the parameter servers, slots included.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/fan_in.h"
#include "common/client/shard_session.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "worker/cache/variable_layout.h"
#include "worker/strategy/parameter_server/shard_group.h"
#include "worker/strategy/replicated/replica_state.h"

namespace lockstep::worker {

// Used once. Not destroyed in a callback.
class StateReader {
 public:
  // `options` as of training. All that is pointed to outlives the reader.
  StateReader(const SessionOptions& options, const VariableLayout& layout,
              const OptimizerRules& rules, const ShardGroupResources& resources);

  // Values first, then one slot after the other, of all shards at once. UNAVAILABLE: the ps have
  // another version, or cannot be reached.
  void Read(GlobalStep version, Callback<ReplicaState> done);
  // Ends Read with CANCELLED. Thread-safe.
  void Cancel();

 private:
  struct Answer {
    GlobalStep version;
    std::vector<float> scalars;
  };

  // One name at a time: "" is the values.
  void ReadNext();
  void OnRead(absl::StatusOr<std::span<const Answer>> answers);
  // The parts, by shard, of what has this name; where they go.
  std::vector<std::vector<FetchTarget>> TargetsOf(const std::string& name);
  void End(absl::StatusOr<ReplicaState> state);

  const SessionOptions options_;
  const VariableLayout& layout_;
  const OptimizerRules& rules_;
  const ShardGroupResources resources_;
  std::vector<std::string> names_;
  size_t next_ = 0;
  ReplicaState state_;  // of Read: most workers get it from a member
  Callback<ReplicaState> done_;
  FanIn<Answer> answers_;  // by shard
  std::atomic<bool> is_cancelled_ = false;
  // By name and shard: none is destroyed in a callback.
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<ShardSession>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
