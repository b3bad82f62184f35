// Training steps of one tower as graphs: their work is enqueued call by call once, and then
// launched with one call.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

// A graph names addresses. There is one for each set of those that differ between steps, of at most
// kMostGraphs sets: a pass for another batch size, or a batch that the device has elsewhere. Steps
// with further sets are enqueued. So is the first step of each set, because libraries load kernels
// when they are first called, which a capture forbids; and all without a graph, once a capture has
// failed.
//
// Not thread-safe. Allocates nothing for a set that has its graph.
class StepGraphs {
 public:
  static constexpr size_t kMostGraphs = 8;  // batches that are copied ahead have two or three sets

  // Has a step's work done on `stream`: calls `enqueue`, or launches what it enqueued for the same
  // addresses. The work of two steps with the same addresses differs in nothing but what is in
  // memory.
  absl::Status Enqueue(std::span<const void* const> addresses,
                       absl::FunctionRef<absl::Status()> enqueue, Stream* stream);

 private:
  struct Step {
    std::vector<const void*> addresses;
    std::unique_ptr<WorkGraph> graph;  // null until it is captured
  };

  // Null: there is none, and no room for it.
  Step* Find(std::span<const void* const> addresses);

  std::vector<Step> steps_;
  bool can_capture_ = true;
};

}  // namespace lockstep::worker
