#include "worker/tower/step_graphs.h"

#include <algorithm>

namespace lockstep::worker {

absl::Status StepGraphs::Enqueue(std::span<const void* const> addresses,
                                 absl::FunctionRef<absl::Status()> enqueue, Stream* stream) {
  Step* const step = Find(addresses);
  if (step == nullptr) return enqueue();
  if (step->addresses.empty()) {
    absl::Status enqueued = enqueue();
    if (enqueued.ok()) step->addresses.assign(addresses.begin(), addresses.end());
    return enqueued;
  }
  if (step->graph == nullptr) {
    if (can_capture_) step->graph = stream->Capture(enqueue);
    can_capture_ = step->graph != nullptr;
    if (!can_capture_) return enqueue();
  }
  stream->Launch(*step->graph);
  return absl::OkStatus();
}

StepGraphs::Step* StepGraphs::Find(std::span<const void* const> addresses) {
  for (Step& step : steps_) {
    if (step.addresses.empty() || std::ranges::equal(step.addresses, addresses)) return &step;
  }
  return can_capture_ && steps_.size() < kMostGraphs ? &steps_.emplace_back() : nullptr;
}

}  // namespace lockstep::worker
