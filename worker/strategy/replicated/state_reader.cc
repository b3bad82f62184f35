#include "worker/strategy/replicated/state_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

StateReader::StateReader(const SessionOptions& options, const VariableLayout& layout,
                         const OptimizerRules& rules, const ShardGroupResources& resources)
    : options_(options),
      layout_(layout),
      rules_(rules),
      resources_(resources),
      names_({""}),
      answers_(resources.shards.size()) {
  for (const WholeVariable& variable : layout.variables()) {
    if (!variable.trainable || variable.frozen) continue;
    for (const SlotSpec& slot : rules.of(variable.name).slots()) {
      if (std::ranges::find(names_, slot.name) == names_.end()) names_.push_back(slot.name);
    }
  }
}

void StateReader::Read(GlobalStep version, Callback<ReplicaState> done) {
  state_ = UninitializedState(layout_, rules_, resources_.make_tensor);
  state_.version = version;
  done_ = std::move(done);
  ReadNext();
}

void StateReader::Cancel() {
  is_cancelled_ = true;
  std::vector<ShardSession*> sessions;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& session : sessions_) sessions.push_back(session.get());
  }
  // Without the lock: it calls back.
  for (ShardSession* const session : sessions) session->Cancel();
}

std::vector<std::vector<FetchTarget>> StateReader::TargetsOf(const std::string& name) {
  std::vector<std::vector<FetchTarget>> targets(resources_.shards.size());
  for (size_t i = 0; i < layout_.variables().size(); ++i) {
    const WholeVariable& variable = layout_.variables()[i];
    Tensor* whole = &state_.values[i];
    if (!name.empty()) {
      if (state_.slots[i].empty()) continue;
      const absl::Span<const SlotSpec> slots = rules_.of(variable.name).slots();
      const auto slot = std::ranges::find(slots, name, &SlotSpec::name);
      if (slot == slots.end()) continue;
      whole = &state_.slots[i][static_cast<size_t>(slot - slots.begin())];
    }
    for (const VariablePart& part : variable.parts) {
      targets[part.shard].push_back(
          {.variable = part.id, .value = part.In(whole->view()), .is_statistic = true});
    }
  }
  return targets;
}

void StateReader::ReadNext() {
  SessionOptions options = options_;
  options.slot = names_[next_];
  std::vector<std::vector<FetchTarget>> targets = TargetsOf(names_[next_]);
  answers_.Arm(
      [this](absl::StatusOr<std::span<const Answer>> answers) { OnRead(std::move(answers)); });
  for (size_t shard = 0; shard < targets.size(); ++shard) {
    if (targets[shard].empty()) {
      answers_.SetAnswer(shard, Answer{state_.version, {}});
      continue;
    }
    ShardSession* session = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      sessions_.push_back(std::make_unique<ShardSession>(options, resources_.shards[shard],
                                                         resources_.timer, resources_.clock));
      session = sessions_.back().get();
    }
    session->SetTargets(std::move(targets[shard]));
    session->Fetch(state_.version, FetchKind::kPresent,
                   [this, shard, session](absl::StatusOr<GlobalStep> version) {
                     if (!version.ok()) return answers_.SetAnswer(shard, version.status());
                     answers_.SetAnswer(shard, Answer{*version, session->Scalars()});
                   });
    if (is_cancelled_) session->Cancel();
  }
}

void StateReader::OnRead(absl::StatusOr<std::span<const Answer>> answers) {
  if (!answers.ok()) return End(answers.status());
  for (size_t shard = 0; shard < answers->size(); ++shard) {
    const Answer& answer = (*answers)[shard];
    if (!answer.scalars.empty()) state_.scalars = answer.scalars;
    if (answer.version == state_.version) continue;
    return End(absl::UnavailableError(absl::StrCat(
        "ps ", shard, " has version ", answer.version.value(), ", not ", state_.version.value(),
        ", at which this worker starts: the workers have ", "gone on without it")));
  }
  if (++next_ < names_.size()) return ReadNext();
  End(std::move(state_));
}

void StateReader::End(absl::StatusOr<ReplicaState> state) {
  std::exchange(done_, nullptr)(std::move(state));
}

}  // namespace lockstep::worker
