#include "worker/tower/gradient_copies.h"

#include "common/base/status_macros.h"
#include "worker/tower/staging.h"

namespace lockstep::worker {

absl::StatusOr<GradientCopies> GradientCopies::Create(size_t variables, Device* device) {
  GradientCopies copies;
  for (size_t variable = 0; variable < variables; ++variable) {
    LOCKSTEP_ASSIGN_OR_RETURN(copies.copied_.emplace_back(), device->CreateEvent());
  }
  return copies;
}

void GradientCopies::Enqueue(int variable, const MutableTensorView& host, Stream* stream,
                             TowerGradient* gradient) {
  if (gradient->view.data == host.data) return;
  gradient->AwaitOn(stream);
  Staging::CopyToHost(gradient->view, host, stream);
  gradient->ready = copied_[static_cast<size_t>(variable)].get();
  stream->Record(gradient->ready);
}

}  // namespace lockstep::worker
