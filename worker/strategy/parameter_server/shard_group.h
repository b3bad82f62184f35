// The shards of a job as training uses them: each gradient goes to all of them, divided into the
// parts that each holds, and is complete when all have judged it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/fan_in.h"
#include "common/base/monotonic_wait.h"
#include "common/client/gradient_pusher.h"
#include "common/client/joined_calls.h"
#include "common/client/ps_client.h"
#include "worker/cache/variable_cache.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

struct ShardGroupOptions {
  WorkerIdentity identity;
  bool asynchronous = false;
  // The towers read a ps's values in its own memory, where that can be had. A version may be
  // overwritten meanwhile, but never before every shard has closed its step: then the gradient is
  // stale everywhere. Not for an asynchronous job, where nothing says so.
  bool values_in_place = false;
  DType wire_dtype = DType::kFloat32;            // PusherOptions, PullerOptions
  absl::Duration patience = absl::Seconds(120);  // with an unreachable ps
  std::vector<std::string> shard_names;          // "ps 1 (host:port)", for messages
  const Clock* clock = Clock::Real();
};

// Used by one thread, but for Cancel. One gradient at a time: Begin, Add or AddRows for each
// variable that is not frozen, Finish.
class ShardGroup {
 public:
  // `layout` and `shards` outlive the group; `shards[k]` talks to ps k.
  ShardGroup(ShardGroupOptions options, const VariableLayout& layout,
             std::span<PsData* const> shards);
  ~ShardGroup();

  const ShardGroupOptions& options() const { return options_; }
  size_t size() const { return joined_.size(); }
  // For a cache of values: what it fetches while a gradient is held goes with that.
  absl::StatusOr<std::unique_ptr<VariableCache>> MakeCache(VariableCache::Contents contents);

  // Learns which shards share memory with this worker. This must be known before the first tensor
  // where it decides the type on the wire: otherwise a run would depend on when the answer comes.
  absl::Status Open();

  // stamps[k] is the version of shard k that the gradient is computed from. `holds`: a message that
  // is the whole gradient waits for Release.
  void Begin(PushSeq push_seq, std::span<const GlobalStep> stamps, bool holds);
  // The gradients of these variables are final: they are sent as far as the window allows. They
  // stay unchanged until Finish has returned.
  void Add(std::span<const int> variables, std::span<const MutableTensorView> gradients,
           const VariableCache& cache);
  // Sends what is held, with the request for a token. Whether a shard answers it only when the
  // step is over.
  bool Release(DequeueSeq dequeue_seq);
  // Blocks until the shards have judged all of it: by shard. The first error that cannot be
  // repaired by repeating.
  absl::StatusOr<std::span<const PushSummary>> Finish() { return verdicts_.Wait(); }
  // Returns the token that came with the gradient, or asks for it.
  absl::StatusOr<DequeueTokenReply> DequeueToken(DequeueSeq dequeue_seq);

  // Ends all calls, and later ones at once. Thread-safe.
  void Cancel();

 private:
  void AddPart(const WholeVariable& variable, const VariablePart& part, const TensorView& values);
  // A part without rows is sent as an empty gradient: the shard counts gradients, not rows.
  void AddRows(const WholeVariable& variable, const PartRows& rows, const TensorView& gradient);

  const ShardGroupOptions options_;
  const VariableLayout& layout_;
  std::vector<std::unique_ptr<JoinedCalls>> joined_;
  std::vector<PsData*> pointers_;  // the same
  absl::once_flag cancel_once_;
  MonotonicNotification cancelled_;
  FanIn<PushSummary> verdicts_;  // by shard, of the gradient under way or the last
  std::vector<std::unique_ptr<GradientPusher>> pushers_;  // by shard; tell the verdicts
};

}  // namespace lockstep::worker
