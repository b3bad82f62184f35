// Memory for a gradient of which nothing has come yet.
#include <memory>
#include <utility>
#include <vector>

#include "ps/shard/gradient_receiver.h"

namespace lockstep::ps {

bool GradientReceiver::FindRoom(DType type, bool may_stay, PartialGradient* gradient) {
  const size_t variable = gradient->variable;
  const CatalogEntry& entry = variables_.catalog[variable];
  if (!may_stay || entry.is_sparse || gradient->num_bytes < kLeastInParts) {
    auto buffer = budget_.Acquire(variable, type, gradient->num_bytes);
    if (!buffer.has_value()) return false;
    gradient->buffer = *std::move(buffer);
    return true;
  }
  if (!budget_.Reserve(variable, gradient->num_bytes)) return false;
  gradient->parts =
      std::make_shared<GradientParts>(type, entry.shape, DenseUpdate::RangeElements(entry.dtype));
  gradient->counts_early =
      !arrived_[variable].empty() && gradient->local_step == step_.StepOf(variable);
  // What has been made of another incarnation's gradient is not made again.
  for (size_t range = 0; range < gradient->parts->num_ranges(); ++range) {
    if (IsApplied(variable, range)) gradient->parts->LetGo(range);
  }
  return true;
}

bool GradientReceiver::MakeRoom(size_t piece, PushContext* push) {
  const size_t variable = push->variables[piece];
  // With chunks that are applied early a step needs the gradients of all replicas. Variables that
  // close later make way for this one when it is the earliest.
  if (!arrived_[variable].empty() || !budget_.IsEarliest(variable)) return false;
  const PartialGradient* const given_up =
      refused_.OnRefused(push->key, push->arguments.local_step, variable,
                         push->arguments.pieces[piece].offset, reassembly_.PartialOf(variable),
                         clock_.Monotonic());
  if (given_up == nullptr) return false;
  // It stays undecided: its worker is answered PENDING, and sends it again.
  Abandon(reassembly_.RemoveIf(
              variable, [&](const PartialGradient& gradient) { return &gradient == given_up; }),
          push->deferred);
  return true;
}

}  // namespace lockstep::ps
