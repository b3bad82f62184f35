#include "worker/tower/tower_group.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

// to = (from[0] + from[1] + ...) / number, element by element in this order.
void Mean(const std::vector<std::vector<MutableTensorView>>& by_tower, int variable,
          std::span<float> to) {
  const float scale = 1.0f / static_cast<float>(by_tower.size());
  std::span<const float> sum = by_tower[0][variable].as<float>();
  for (size_t tower = 1; tower < by_tower.size(); ++tower) {
    const std::span<const float> term = by_tower[tower][variable].as<float>();
    for (size_t i = 0; i < to.size(); ++i) to[i] = sum[i] + term[i];
    sum = to;
  }
  for (float& element : to) element *= scale;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TowerGroup>> TowerGroup::Create(const ModelGraph& graph,
                                                               const TowerGroupOptions& options) {
  if (options.towers < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("towers: expected at least 1, got ", options.towers));
  }
  std::vector<std::unique_ptr<Tower>> towers(options.towers);
  for (std::unique_ptr<Tower>& tower : towers) {
    LOCKSTEP_ASSIGN_OR_RETURN(tower, Tower::Create(graph, {.batch = options.batch_per_tower,
                                                           .threads = options.threads_per_tower}));
  }
  return std::unique_ptr<TowerGroup>(new TowerGroup(std::move(towers), graph));
}

TowerGroup::TowerGroup(std::vector<std::unique_ptr<Tower>> towers, const ModelGraph& graph)
    : towers_(std::move(towers)), finished_(towers_.size()) {
  if (size() == 1) return;
  for (const ModelVariable& variable : graph.variables()) frozen_.push_back(variable.frozen);
  memory_.resize(towers_.size());
  gradients_.resize(towers_.size());
  for (int tower = 0; tower < size(); ++tower) {
    memory_[tower].resize(graph.variables().size());
    gradients_[tower].resize(graph.variables().size());
  }
  for (int tower = 0; tower < size(); ++tower) {
    threads_.emplace_back([this, tower] { Work(tower); });
  }
}

TowerGroup::~TowerGroup() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<float> TowerGroup::Train(std::span<const Batch> batches,
                                        const VariableValues& variables,
                                        std::span<const MutableTensorView> gradients,
                                        uint64_t random_key, const Tower::GradientReady& ready) {
  LOCKSTEP_CHECK(batches.size() == towers_.size());
  if (size() == 1) return towers_[0]->Train(batches[0], variables, gradients, random_key, ready);
  FitGradients(gradients);
  {
    absl::MutexLock lock(&mutex_);
    step_ = {batches, variables, random_key};
    std::fill(finished_.begin(), finished_.end(), 0);
    ++steps_started_;
  }
  // Towers finish variables from the last, which is the loss, to the first.
  int announced = 0;
  for (int variable = static_cast<int>(gradients.size()) - 1; variable >= 0; --variable) {
    if (frozen_[variable]) continue;
    WaitForVariables(++announced);
    Mean(gradients_, variable, gradients[variable].as<float>());
    ready({&variable, 1});
  }
  return gradients.back().as<float>()[0];
}

void TowerGroup::FitGradients(std::span<const MutableTensorView> wanted) {
  for (int tower = 0; tower < size(); ++tower) {
    for (size_t variable = 0; variable < wanted.size(); ++variable) {
      const MutableTensorView& like = wanted[variable];
      Tensor& memory = memory_[tower][variable];
      if (frozen_[variable]) continue;
      if (memory.num_bytes() < like.num_bytes()) memory = Tensor(like.dtype, like.shape);
      gradients_[tower][variable] = {like.dtype, like.shape, memory.data()};
    }
  }
}

void TowerGroup::WaitForVariables(int count) {
  const auto reached = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return *std::min_element(finished_.begin(), finished_.end()) >= count;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&reached));
}

void TowerGroup::Work(int tower) {
  for (int64_t done = 0;; ++done) {
    const auto due = [this, done]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || steps_started_ > done;
    };
    Step step;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&due));
      if (stopping_) return;
      step = step_;
    }
    // Towers drop out independently.
    const uint64_t key = MixSeeds(step.random_key, static_cast<uint64_t>(tower));
    const auto ready = [&](std::span<const int> variables) {
      absl::MutexLock lock(&mutex_);
      finished_[tower] += static_cast<int>(variables.size());
    };
    // The tower of a CPU does not fail.
    LOCKSTEP_CHECK(towers_[tower]
                       ->Train(step.batches[tower], step.variables, gradients_[tower], key, ready)
                       .ok());
  }
}

}  // namespace lockstep::worker
