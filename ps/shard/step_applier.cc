#include "ps/shard/step_applier.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/update/sparse_sum.h"
#include "common/update/sparse_update.h"
#include "common/update/update_batch.h"
#include "ps/shard/state_pieces.h"

namespace lockstep::ps {
namespace {

// With fewer parts to make, a helper would still be waiting for a core when all is made.
constexpr size_t kPartsForHelpers = 5;

// Statistics up to this size travel with the closed step: the loss among them.
constexpr int64_t kMaxStatisticElements = 16;

SmallStatistic Summary(const CatalogEntry& entry, const Tensor& value, size_t count) {
  SmallStatistic statistic{entry.id, {}, static_cast<uint32_t>(count)};
  if (value.dtype() == DType::kFloat32) {
    const std::span<const float> elements = value.as<float>();
    statistic.values.assign(elements.begin(), elements.end());
  } else {
    for (const double element : value.as<double>()) {
      statistic.values.push_back(static_cast<float>(element));
    }
  }
  return statistic;
}

DenseUpdate BeginDense(const EpochState& state, const TakenVariable& of) {
  VariableEntry& hosted = *state.variables.entries[of.variable];
  std::optional<DenseUpdate> update = std::exchange(hosted.early, std::nullopt);
  if (!update.has_value()) {
    update.emplace(of.taken.step, of.learning_rate, *hosted.rule, state.ScalarsOf(hosted),
                   &hosted.variable);
  }
  DenseUpdate::GradientSources gradients;
  for (const HeldGradient& held : of.taken.gradients) gradients.push_back(SourceOf(held.gradient));
  update->SetGradients(std::move(gradients), of.taken.divisor);
  return *std::move(update);
}

// Of the version that has been made, of which `next` is not published yet. Nothing changes them
// before that.
std::vector<std::span<const std::byte>> StateBytes(const EpochVariables& variables,
                                                   absl::Span<const TakenVariable> taken,
                                                   absl::Span<const NextValue> next) {
  std::vector<const Tensor*> values;
  for (const auto& entry : variables.entries) values.push_back(entry->variable.newest().get());
  for (size_t i = 0; i < taken.size(); ++i) values[taken[i].variable] = next[i].value.get();
  std::vector<std::span<const std::byte>> bytes;
  ForEachStateTensor(variables, [&](size_t variable, std::optional<size_t> slot) {
    const auto& slots = variables.entries[variable]->variable.slots();
    bytes.push_back(slot.has_value() ? TensorView(slots[*slot]).bytes()
                                     : values[variable]->view().bytes());
  });
  return bytes;
}

std::vector<CountedPush> PushesOf(const TakenVariable& taken) {
  std::vector<CountedPush> pushes;
  pushes.reserve(taken.taken.gradients.size());
  for (const HeldGradient& held : taken.taken.gradients) {
    pushes.push_back({held.worker, held.incarnation, held.push_seq});
  }
  return pushes;
}

// `mean`: where the mean goes, from which the variable is changed then; null: nobody wants it.
NextValue ComputeRows(const EpochState& state, const TakenVariable& of, RunRanges run,
                      std::shared_ptr<const IndexedSlices>* mean) {
  VariableEntry& hosted = *state.variables.entries[of.variable];
  Variable& variable = hosted.variable;
  absl::InlinedVector<IndexedSlicesView, 4> gradients;
  for (const HeldGradient& held : of.taken.gradients) {
    gradients.push_back(SlicesOf(held.gradient, variable.dtype(), variable.shape()));
  }
  if (mean != nullptr) {
    *mean = std::make_shared<const IndexedSlices>(SparseMean(gradients));
    gradients = {(*mean)->view()};
  }
  absl::MutexLockMaybe lock(hosted.table == nullptr ? nullptr : &hosted.table->mutex);
  SparseUpdate update(of.taken.step, of.learning_rate, *hosted.rule, state.ScalarsOf(hosted),
                      &variable);
  return update.Make(gradients, run);
}

}  // namespace

struct StepApplier::Unshown {
  GlobalStep step;
  std::vector<TakenVariable> taken;  // none: the step has no gradients
  std::vector<NextValue> next;
};

struct StepApplier::StatePart {
  std::shared_ptr<CopyTarget> copy;
  GlobalStep step;
  std::vector<std::span<const std::byte>> tensors;
};

void StepApplier::TakeReady(DeferredCallbacks* deferred) {
  state_->mu.AssertHeld();
  for (TakenVariable& taken : state_->step.TakeReady()) OnTaken(std::move(taken), deferred);
  PassMilestones(/*is_copied=*/false, deferred);
}

bool StepApplier::TryTake(size_t variable, DeferredCallbacks* deferred) {
  std::optional<TakenVariable> taken = state_->step.TryTake(variable);
  if (!taken.has_value()) return false;
  OnTaken(*std::move(taken), deferred);
  return true;
}

// What was on its way for the step is lost, and the version before the newest makes room.
void StepApplier::OnTaken(TakenVariable taken, DeferredCallbacks* deferred) {
  state_->driver->OnTaken(taken);
  deferred->LetGo(state_->variables.entries[taken.variable]->variable.DropPrevious());
  state_->receiver.OnTaken(taken, deferred);
  // Other threads of this operation read it meanwhile, where there is none.
  if (copy_ != state_->copy) copy_ = state_->copy;
  taken_.push_back(std::move(taken));
}

void StepApplier::Run() {
  while (!taken_.empty()) {
    std::vector<TakenVariable> taken = std::exchange(taken_, {});
    const auto dense = std::stable_partition(taken.begin(), taken.end(), [&](const auto& one) {
      return state_->variables.catalog[one.variable].is_sparse;
    });
    const auto num_sparse = static_cast<size_t>(dense - taken.begin());
    // One after the other: the rows of each are a loop on all threads.
    for (size_t i = 0; i < num_sparse; ++i) ApplyRows(&taken[i]);
    ApplyDense(absl::MakeSpan(taken).subspan(num_sparse));
  }
}

void StepApplier::ApplyRows(TakenVariable* taken) {
  const auto run = [this](size_t count, size_t step, absl::FunctionRef<void(size_t, size_t)> work) {
    state_->host.pool->ForRanges(count, step, work);
  };
  const CatalogEntry& entry = state_->variables.catalog[taken->variable];
  std::vector<MeanGradient> means;
  if (copy_ != nullptr) means.push_back({entry.id, entry.shape, {}, {}, PushesOf(*taken)});
  NextValue next = ComputeRows(*state_, *taken, run, means.empty() ? nullptr : &means.front().rows);
  Show(absl::MakeSpan(taken, 1), absl::MakeSpan(&next, 1), std::move(means));
}

void StepApplier::ApplyDense(absl::Span<TakenVariable> taken_now) {
  std::vector<DenseUpdate> updates;
  updates.reserve(taken_now.size());
  std::vector<MeanGradient> means;
  for (const TakenVariable& taken : taken_now) {
    updates.push_back(BeginDense(*state_, taken));
    if (copy_ == nullptr) continue;
    const CatalogEntry& entry = state_->variables.catalog[taken.variable];
    const MutableTensorView mean = copy_->MeanOf(entry.id, entry.dtype, entry.shape);
    updates.back().KeepMean(mean);
    means.push_back({entry.id, entry.shape, mean, {}, PushesOf(taken)});
  }
  UpdateBatch together(std::move(updates));
  const auto make = [&](size_t part) {
    UpdateBatch::Group whole;
    if (!together.Make(part, &whole)) return;
    absl::InlinedVector<NextValue, 4> next;
    for (size_t i = whole.first; i < whole.end; ++i) next.push_back(together.update(i).Finish());
    std::vector<MeanGradient> of_group;
    for (size_t i = whole.first; i < whole.end && !means.empty(); ++i) of_group.push_back(means[i]);
    Show(taken_now.subspan(whole.first, next.size()), absl::MakeSpan(next), std::move(of_group));
  };
  const size_t num_parts = together.num_parts();
  const size_t at_a_time = num_parts < kPartsForHelpers ? kPartsForHelpers : 1;
  state_->host.pool->ForRanges(num_parts, at_a_time, [&](size_t begin, size_t end) {
    for (size_t part = begin; part < end; ++part) make(part);
  });
}

void StepApplier::Show(absl::Span<TakenVariable> taken, absl::Span<NextValue> next,
                       std::vector<MeanGradient> means) {
  if (copy_ == nullptr) return Publish(taken, next);
  StepMeans sent{taken.front().taken.step, taken.front().learning_rate, std::move(means)};
  {
    absl::MutexLock lock(&state_->mu);
    sent.stale = state_->host.counts->stale;
  }
  auto unshown = std::make_shared<Unshown>(
      Unshown{sent.step,
              {std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end())},
              {std::make_move_iterator(next.begin()), std::make_move_iterator(next.end())}});
  Send(copy_.get(), std::move(sent), std::make_shared<StepApplier>(pass_.Share()), unshown);
}

void StepApplier::Send(CopyTarget* copy, StepMeans means, const std::shared_ptr<StepApplier>& rest,
                       const std::shared_ptr<Unshown>& unshown) {
  copy->Send(std::move(means), [rest, unshown](const absl::Status& copied) {
    if (copied.ok()) return OnCopied(rest, unshown);
    rest->pass_ = EpochGate::Pass();
  });
}

void StepApplier::OnCopied(const std::shared_ptr<StepApplier>& rest,
                           const std::shared_ptr<Unshown>& unshown) {
  if (std::optional<StatePart> part = rest->PublishOrPart(unshown.get())) {
    part->copy->SendState(part->step, std::move(part->tensors),
                          [rest, unshown](const absl::Status& copied) {
                            if (copied.ok()) {
                              rest->Publish(unshown.get());
                              rest->Run();
                            }
                            rest->pass_ = EpochGate::Pass();
                          });
    return;
  }
  rest->Run();
  rest->pass_ = EpochGate::Pass();
}

std::optional<StepApplier::StatePart> StepApplier::PublishOrPart(Unshown* unshown) {
  DeferringLock lock(&state_->mu);
  std::shared_ptr<CopyTarget> copy = state_->copy;
  const bool ends_step = unshown->step == state_->step.shard_step() &&
                         state_->step.num_open() == unshown->taken.size();
  if (ends_step && copy != nullptr && copy->LacksState()) {
    return StatePart{std::move(copy), state_->step.shard_step().next(),
                     StateBytes(state_->variables, unshown->taken, unshown->next)};
  }
  Publish(unshown, lock.deferred());
  return std::nullopt;
}

void StepApplier::Publish(Unshown* unshown) {
  DeferringLock lock(&state_->mu);
  Publish(unshown, lock.deferred());
}

void StepApplier::Publish(Unshown* unshown, DeferredCallbacks* deferred) {
  if (!unshown->taken.empty()) {
    return Publish(absl::MakeSpan(unshown->taken), absl::MakeSpan(unshown->next), deferred);
  }
  // A copy that is taken away may tell so after its last step has closed without it.
  if (unshown->step != state_->step.shard_step()) return;
  state_->awaits_copy = false;
  PassMilestones(/*is_copied=*/true, deferred);
}

void StepApplier::Publish(absl::Span<TakenVariable> taken, absl::Span<NextValue> next) {
  DeferringLock lock(&state_->mu);
  Publish(taken, next, lock.deferred());
}

void StepApplier::Publish(absl::Span<TakenVariable> taken, absl::Span<NextValue> next,
                          DeferredCallbacks* deferred) {
  for (size_t i = 0; i < taken.size(); ++i) {
    const size_t variable = taken[i].variable;
    const CatalogEntry& entry = state_->variables.catalog[variable];
    std::vector<HeldGradient>& gradients = taken[i].taken.gradients;
    if (!entry.trainable && next[i].value->num_elements() <= kMaxStatisticElements) {
      state_->driver->AddStatistic(Summary(entry, *next[i].value, gradients.size()));
    }
    state_->variables.entries[variable]->variable.Publish(std::move(next[i]));
    for (HeldGradient& held : gradients) {
      state_->receiver.Release(variable, std::move(held.gradient), deferred);
    }
    state_->step.Published(variable);
  }
  // After all of them: a pull of several finds them at once.
  for (const TakenVariable& one : taken) {
    state_->reader.RetryPulls(one.variable, deferred);
  }
  PassMilestones(/*is_copied=*/false, deferred);
}

void StepApplier::PassMilestones(bool is_copied, DeferredCallbacks* deferred) {
  while (const std::optional<Milestone> milestone = state_->driver->NextMilestone()) {
    if (milestone->closes_step) {
      if (!std::exchange(is_copied, false) && TellCopy(deferred)) break;
      AdvanceStep(deferred);
    } else {
      const auto snapshot = TakeSnapshot(state_->variables, milestone->terms);
      if (snapshot != nullptr) snapshot->scalars = state_->scalars;
      state_->driver->AnswerKept(snapshot, deferred);
    }
    for (TakenVariable& taken : state_->step.TakeReady()) OnTaken(std::move(taken), deferred);
  }
  has_stopped_ = state_->driver->has_stopped();
}

bool StepApplier::TellCopy(DeferredCallbacks* deferred) {
  const GlobalStep step = state_->step.shard_step();
  if (state_->copy == nullptr || state_->step.turns().ExpectsAny(step)) return false;
  if (std::exchange(state_->awaits_copy, true)) return true;
  const PushCounts& counts = *state_->host.counts;
  // Without the lock.
  deferred->Answer<bool>(
      [copy = state_->copy,
       means = StepMeans{step, state_->step.terms()->learning_rate, {}, counts.stale},
       rest = std::make_shared<StepApplier>(pass_.Share())](const absl::StatusOr<bool>&) mutable {
        auto unshown = std::make_shared<Unshown>(Unshown{means.step, {}, {}});
        Send(copy.get(), std::move(means), rest, unshown);
      },
      true);
  return true;
}

void StepApplier::AdvanceStep(DeferredCallbacks* deferred) {
  const GrantTerms terms = *state_->step.terms();
  const GlobalStep step = state_->step.shard_step();
  const EpochVariables& variables = state_->variables;
  const GradientTurns& turns = state_->step.turns();
  const size_t loss = turns.losses().LossOf(step);
  variables.optimizers[loss].plain().AdvanceScalars(absl::MakeSpan(state_->scalars[loss]));
  if (auto snapshot = TakeSnapshot(variables, terms)) {
    snapshot->scalars = state_->scalars;
    Keep(step.next(), terms, std::move(snapshot));
  }
  state_->step.Advance();
  state_->awaits_copy = false;
  // What the step did not change has every version that the others have.
  for (size_t i = 0; i < variables.entries.size(); ++i) {
    if (turns.Expects(step, i)) continue;
    variables.entries[i]->variable.PublishUnchanged();
    state_->reader.RetryPulls(i, deferred);
  }
  state_->receiver.BeginStep();
  state_->driver->BeginStep();
  absl::Status committed;
  if (terms.commit) {
    committed = state_->tokens->Commit(step, terms.last, state_->step.shard_step(), deferred);
  }
  state_->driver->AnswerClosed(step, committed, deferred);
  if (state_->new_copy != nullptr && state_->new_copy->IsReady()) BeginCopy(deferred);
}

void StepApplier::BeginCopy(DeferredCallbacks* deferred) {
  state_->copy = std::exchange(state_->new_copy, nullptr);
  StateBegin begin{.step = state_->step.shard_step(),
                   .scalars = {},
                   .tensors = StateTensorsOf(state_->variables),
                   .accepted = state_->host.counts->accepted,
                   .stale = state_->host.counts->stale};
  // Those that the step at hand holds are told with its means.
  for (size_t variable = 0; variable < state_->variables.catalog.size(); ++variable) {
    begin.accepted -= static_cast<uint64_t>(state_->step.accumulator(variable).num_accumulated());
  }
  for (const std::vector<float>& of_loss : state_->scalars) {
    begin.scalars.insert(begin.scalars.end(), of_loss.begin(), of_loss.end());
  }
  // Without the lock. Means that are sent before wait.
  deferred->Answer<bool>(
      [copy = state_->copy, begin = std::move(begin)](const absl::StatusOr<bool>&) mutable {
        copy->BeginState(std::move(begin));
      },
      true);
}

void StepApplier::Keep(GlobalStep version, const GrantTerms& terms,
                       std::shared_ptr<Snapshot> snapshot) {
  state_->snapshots.Keep(version, snapshot);
  if (!state_->variables.config.is_replicated()) return;
  state_->to_store.Await(version, StoredVersion(state_->variables, std::move(snapshot)));
  if (state_->tokens != nullptr) state_->tokens->AskToStore(version, terms.keep_slots);
}

}  // namespace lockstep::ps
