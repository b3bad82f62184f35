// The worker's gradients on their way to all shards: each variable leaves as soon as it is there,
// in parts where it is split.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/fan_in.h"
#include "common/client/gradient_pusher.h"
#include "common/client/ps_client.h"
#include "common/tensor/tensor.h"
#include "worker/cache/part_rows.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

// Used by one thread. One gradient at a time: Start, Send or SendRows for each variable that is not
// frozen, Finish.
class GradientSender {
 public:
  // `layout` and the shards outlive the sender; `shards[k]` talks to ps k.
  GradientSender(const VariableLayout& layout, std::span<PsData* const> shards,
                 const PusherOptions& options);
  ~GradientSender();

  // stamps[k] is the version of shard k that the gradient is computed from.
  void Start(PushSeq push_seq, std::span<const GlobalStep> stamps);
  // The gradient of a dense variable, or what a statistic is averaged from. It leaves with the next
  // Flush, or with the last variable, and stays unchanged until Finish has returned.
  void Send(size_t variable, const TensorView& gradient);
  // Of a sparse one: those of the rows that `rows` divided. A part of which there are none is told
  // so: it counts gradients, not rows.
  void SendRows(size_t variable, const PartRows& rows, const TensorView& gradient);
  void Flush();
  // Blocks until the shards have judged all of it: by shard. The first error that cannot be
  // repaired by repeating.
  absl::StatusOr<std::span<const PushSummary>> Finish();

 private:
  void SendPart(const WholeVariable& variable, const VariablePart& part, const TensorView& values);

  const VariableLayout& layout_;
  FanIn<PushSummary> verdicts_;  // by shard, of the gradient under way or the last
  std::vector<std::unique_ptr<GradientPusher>> pushers_;  // by shard; tell the verdicts
};

}  // namespace lockstep::worker
