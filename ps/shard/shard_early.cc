#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "ps/shard/shard_impl.h"

namespace lockstep::ps {

void Shard::Impl::Arrived(EpochState* state, size_t variable, size_t range, PushContext* push) {
  EarlyClose& early = state->variables[variable]->early;
  if (++early.arrived[range] == state->config.replicas_to_aggregate()) {
    push->early.push_back({variable, range, {}});
  }
}

void Shard::Impl::Forget(EpochState* state, const PartialGradient& gradient) {
  // Once the variable has closed, others count.
  if (!gradient.counts_early || gradient.local_step != state->step.StepOf(gradient.variable)) {
    return;
  }
  EarlyClose& early = state->variables[gradient.variable]->early;
  for (size_t range = 0; range < early.arrived.size(); ++range) {
    const bool is_made = IsMade(*state, gradient.variable, range);
    if (gradient.parts->IsWhole(range) && !is_made) --early.arrived[range];
  }
}

bool Shard::Impl::IsMade(const EpochState& state, size_t variable, size_t range) {
  // Once it is taken, the update is another thread's, and of a step that is over.
  if (state.step.IsTaken(variable)) return false;
  const std::optional<DenseUpdate>& update = state.variables[variable]->early.update;
  return update.has_value() && update->IsEarly(range);
}

void Shard::Impl::BeginEarly(PushContext* push) {
  EpochState& state = *push->state;
  std::erase_if(push->early, [&](const ReadyChunk& ready) {
    mutex_.AssertHeld();
    return phase_ == Phase::kFinished || !state.step.terms().has_value() ||
           state.step.IsTaken(ready.variable);
  });
  for (size_t i = 0; i < push->early.size(); ++i) {
    ReadyChunk& ready = push->early[i];
    VariableEntry& hosted = *state.variables[ready.variable];
    std::optional<DenseUpdate>& update = hosted.early.update;
    if (!update.has_value()) {
      // All replicas have this step's token: the version before it is no longer needed,
      // and its memory may hold the next.
      hosted.variable.DropPrevious().reset();
      update.emplace(state.step.shard_step(), state.step.terms()->learning_rate, *hosted.rule,
                     state.scalars, &hosted.variable);
    }
    LOCKSTEP_CHECK(update->ClaimEarly(ready.range));
    state.step.BeginEarly(ready.variable);
    const bool is_next = i > 0 && push->early[i - 1].variable == ready.variable;
    ready.gradients = is_next ? push->early[i - 1].gradients : GradientsOf(state, ready.variable);
  }
}

Shard::Impl::ReadyChunk::Gradients Shard::Impl::GradientsOf(const EpochState& state,
                                                            size_t variable) {
  ReadyChunk::Gradients gradients;
  for (uint32_t i = 0; i < state.config.replicas_to_aggregate(); ++i) {
    const WorkerIndex worker(i);
    const HeldGradient* const whole = state.step.accumulator(variable).Find(worker);
    if (whole != nullptr) {
      gradients.push_back(SourceOf(whole->gradient));
    } else {
      const auto gradient = state.reassembly.Find(worker, variable);
      LOCKSTEP_CHECK(gradient != nullptr && gradient->parts != nullptr);
      gradients.push_back({gradient->parts->view(), gradient->parts});
    }
  }
  return gradients;
}

void Shard::Impl::ApplyReadyChunks(PushContext* push, std::vector<TakenVariable>* all_taken) {
  EpochState& state = *push->state;
  // Here, and not on helping threads: what has just come is in this core's caches, and who waits
  // for helpers waits for all that runs on their cores.
  for (ReadyChunk& ready : push->early) {
    state.variables[ready.variable]->early.update->MakeEarly(ready.range, ready.gradients);
    for (const GradientSource& gradient : ready.gradients) {
      if (gradient.parts != nullptr) gradient.parts->LetGo(ready.range);
    }
  }
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    for (const ReadyChunk& made : push->early) {
      VariableEntry& hosted = *state.variables[made.variable];
      const DenseUpdate& update = *hosted.early.update;
      hosted.variable.ShowPart(update.Unfinished(), update.BytesOf(made.range));
      state.step.EndEarly(made.variable);
    }
    for (const ReadyChunk& made : push->early) {
      TryClose(&state, made.variable, all_taken, &deferred);
    }
    for (const ReadyChunk& made : push->early) RetryPulls(made, &deferred);
    if (all_taken->empty()) EndFlight(&deferred);
  }
  push->early.clear();
  deferred.Run();
}

}  // namespace lockstep::ps
