#include "worker/tower/peer_gradients.h"

#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "worker/tower/batch_rows.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<PeerGradients>> PeerGradients::Create(
    const ModelGraph& graph, int64_t row_examples, absl::FunctionRef<bool(int)> is_copied,
    Device* device) {
  LOCKSTEP_ASSIGN_OR_RETURN(DeviceQueue queue, DeviceQueue::Create(device));
  std::unique_ptr<PeerGradients> peer(new PeerGradients(device, std::move(queue)));
  const std::vector<int64_t> most_rows = BatchRows(graph).MostRows(row_examples);
  for (size_t i = 0; i < graph.variables().size(); ++i) {
    const ModelVariable& variable = graph.variables()[i];
    const TensorView most{variable.dtype, MostOf(variable, most_rows[i])};
    const bool has_copy = !variable.frozen && is_copied(static_cast<int>(i));
    const size_t bytes = has_copy ? most.num_bytes() : 0;
    peer->places_.push_back(peer->staging_.AddPlace(bytes));
    LOCKSTEP_ASSIGN_OR_RETURN(peer->copied_.emplace_back(), device->CreateEvent());
  }
  LOCKSTEP_RETURN_IF_ERROR(
      Annotate(peer->staging_.Allocate(), "gradients of a tower on another device"));
  return peer;
}

absl::Status PeerGradients::Enqueue(int variable, TowerGradient* gradient) {
  const MutableTensorView there = gradient->view;
  LOCKSTEP_ASSIGN_OR_RETURN(gradient->view, staging_.OnDevice(places_[variable], there));
  Stream* const stream = queue_.stream();
  gradient->AwaitOn(stream);
  stream->CopyFromPeer(gradient->view.data, there.data, there.num_bytes());
  gradient->ready = copied_[variable].get();
  gradient->stream = stream;
  stream->Record(gradient->ready);
  return absl::OkStatus();
}

}  // namespace lockstep::worker
