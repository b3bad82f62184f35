#include "worker/tower/reduction_streams.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace lockstep::worker {

std::vector<int> LeastLoadedTowers(const ModelGraph& graph, int towers) {
  std::vector<int64_t> elements(towers);
  std::vector<int> chosen;
  for (const ModelVariable& variable : graph.variables()) {
    const auto least = std::ranges::min_element(elements);
    chosen.push_back(static_cast<int>(least - elements.begin()));
    if (!variable.frozen) *least += variable.shape.num_elements();
  }
  return chosen;
}

absl::StatusOr<std::unique_ptr<ReductionStreams>> ReductionStreams::Create(PsDevice place,
                                                                           int towers,
                                                                           const ModelGraph& graph,
                                                                           Device* device) {
  auto streams = std::make_unique<ReductionStreams>();
  LOCKSTEP_ASSIGN_OR_RETURN(streams->queues_.emplace_back(), DeviceQueue::Create(device));
  streams->by_variable_.assign(graph.variables().size(), streams->common());
  if (place != StrategyDef::ParameterServer::GPU || towers == 1) return streams;
  for (int tower = 0; tower < towers; ++tower) {
    LOCKSTEP_ASSIGN_OR_RETURN(streams->queues_.emplace_back(),
                              DeviceQueue::Create(device, {.background = true}));
  }
  const std::vector<int> tower_of = LeastLoadedTowers(graph, towers);
  for (size_t variable = 0; variable < tower_of.size(); ++variable) {
    streams->by_variable_[variable] = streams->queues_[1 + tower_of[variable]].stream();
  }
  return streams;
}

absl::Status ReductionStreams::Finish() {
  absl::Status status;
  for (const DeviceQueue& queue : queues_) status.Update(queue.Finish());
  return status;
}

}  // namespace lockstep::worker
