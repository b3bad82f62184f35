// Memory for a gradient of which nothing has come yet.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
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

bool GradientReceiver::MakeRoom(size_t piece, uint64_t bytes, PushContext* push) {
  const size_t variable = push->variables[piece];
  // With chunks that are applied early a step needs the gradients of all replicas. Variables that
  // close later make way for this one when it is the earliest.
  if (!arrived_[variable].empty() || !budget_.IsEarliest(variable)) return false;
  const auto makes_room = [&](absl::Span<const PartialGradient* const> given_up) {
    uint32_t count = 0;
    uint64_t freed = 0;
    for (const PartialGradient* const gradient : given_up) {
      // The budget has no part in what lies in a worker's memory.
      if (gradient->parts == nullptr && gradient->buffer.is_borrowed()) continue;
      ++count;
      freed += gradient->num_bytes;
    }
    return budget_.HasRoomWithout(variable, count, freed, bytes);
  };
  const std::vector<const PartialGradient*> given_up = refused_.OnRefused(
      push->key, push->arguments.local_step, variable, push->arguments.pieces[piece].offset,
      reassembly_.PartialOf(variable), clock_.Monotonic(), makes_room);
  if (given_up.empty()) return false;
  // They stay undecided: their workers are answered PENDING, and send them again.
  Abandon(reassembly_.RemoveIf(variable,
                               [&](const PartialGradient& gradient) {
                                 return std::ranges::find(given_up, &gradient) != given_up.end();
                               }),
          push->deferred);
  return true;
}

}  // namespace lockstep::ps
