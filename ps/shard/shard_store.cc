// Versions of variables that the workers keep.
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "ps/shard/epoch_state.h"
#include "ps/shard/shard.h"
#include "ps/shard/step_applier.h"

namespace lockstep::ps {
namespace {

// All of it is there: it can be read, and the step that it begins may close.
void Publish(GlobalStep version, EpochState* state, DeferredCallbacks* deferred)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mu) {
  const auto kept = state->snapshots.Find(version);
  for (size_t i = 0; kept != nullptr && i < state->variables.entries.size(); ++i) {
    if (!state->variables.catalog[i].is_replicated) continue;
    state->variables.entries[i]->variable.PublishAs(version, kept->values[i].tensor);
    state->reader.RetryPulls(i, deferred);
  }
}

}  // namespace

absl::StatusOr<bool> Shard::Store(const StoreArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(EpochGate::Pass pass, Enter(arguments.worker));
  EpochState& state = *pass.state();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ResolvedStore> pieces,
                            ResolveStore(state.variables, arguments));
  std::optional<StepApplier> applier;
  {
    DeferringLock lock(&mutex_);
    state.mu.AssertHeld();
    LOCKSTEP_RETURN_IF_ERROR(CheckHosting(view_.CheckWorker(arguments.worker)));
    ++state_messages_;
    StoredVersion* const stored = state.to_store.Find(arguments.version);
    if (stored == nullptr) return true;
    stored->Take(pieces, arguments.tensors);
    if (!stored->is_complete()) return false;
    state.to_store.End(arguments.version, lock.deferred());
    Publish(arguments.version, &state, lock.deferred());
    applier.emplace(std::move(pass));
    applier->TakeReady(lock.deferred());
  }
  applier->Run();
  return true;
}

void Shard::AwaitStored(const Command& command, GlobalStep version, Callback<bool> done) {
  DeferringLock lock(&mutex_);
  const absl::Status status = CheckHosting(view_.CheckServingCommand(command));
  if (!status.ok()) return lock.deferred()->Answer<bool>(std::move(done), status);
  EpochState& state = *gate_.state();
  state.mu.AssertHeld();
  state.to_store.WhenComplete(version, std::move(done), lock.deferred());
}

}  // namespace lockstep::ps
