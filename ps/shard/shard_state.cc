// The state that a primary sends to a copy which was made while the job trains.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/tensor/segmented_reader.h"
#include "ps/shard/epoch_state.h"
#include "ps/shard/shard.h"
#include "ps/shard/state_pieces.h"

namespace lockstep::ps {
namespace {

void RestartAt(GlobalStep step, const std::vector<float>& scalars, EpochState* state)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mu) {
  state->step.RestartAt(step);
  state->receiver.Restart();
  for (const auto& entry : state->variables.entries) entry->variable.RestartAt(step);
  auto next = scalars.begin();
  for (std::vector<float>& of_loss : state->scalars) {
    for (float& scalar : of_loss) scalar = *next++;
  }
}

void Write(const std::vector<StateRange>& ranges, const ReceivedTensors& tensors, EpochState* state)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mu) {
  SegmentedReader payload(tensors.segments());
  for (const StateRange& range : ranges) {
    const StateTensor& tensor = state->incoming->tensors()[range.tensor];
    VariableEntry& entry = *state->variables.entries[tensor.variable];
    absl::MutexLockMaybe lock(entry.table == nullptr ? nullptr : &entry.table->mutex);
    const MutableTensorView to = tensor.slot.has_value() ? entry.variable.slots()[*tensor.slot]
                                                         : entry.variable.OverwriteNewest();
    LOCKSTEP_CHECK(payload.CopyTo(to.bytes().subspan(range.offset, range.size)));
    state->incoming->RecordPiece(range.tensor, range.offset, range.size);
  }
}

}  // namespace

// The bytes are copied under the lock: the primary sends them in messages of 1 MiB, and nothing
// else while it holds the step back.
absl::StatusOr<bool> Shard::PutState(const StateArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const EpochGate::Pass pass, Enter(arguments.worker));
  EpochState& state = *pass.state();
  absl::MutexLock lock(&mutex_);
  state.mu.AssertHeld();
  LOCKSTEP_RETURN_IF_ERROR(CheckHosting(view_.CheckWorker(arguments.worker)));
  ++state_messages_;
  if (!view_.is_copy() || state.incoming == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("state of shard ", view_.shard().value(), ": ",
                     view_.is_copy() ? "its copy was created with all of it"
                                     : "this ps serves the workers, and keeps no copy"));
  }
  StateReceiver& incoming = *state.incoming;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StateRange> ranges,
                            ResolveState(state.variables, incoming.tensors(), arguments));
  if (arguments.begins) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool begins_here, incoming.Begin(arguments.step));
    if (begins_here) {
      RestartAt(arguments.step, arguments.scalars, &state);
      counts_.accepted = arguments.accepted;
      counts_.stale = arguments.stale;
    }
  }
  // Once all is there a repeated message changes nothing.
  if (incoming.is_complete() || (ranges.empty() && !arguments.completes)) {
    return incoming.is_complete();
  }
  LOCKSTEP_RETURN_IF_ERROR(
      incoming.CheckStep(arguments.step, state.step.shard_step(), state.step.IsUntouched()));
  Write(ranges, arguments.tensors, &state);
  if (arguments.completes) LOCKSTEP_RETURN_IF_ERROR(incoming.Complete(arguments.step));
  return incoming.is_complete();
}

}  // namespace lockstep::ps
