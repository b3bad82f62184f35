#include "ps/shard/held_budget.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace lockstep::ps {

HeldBudget::HeldBudget(std::vector<Kind> variables, uint64_t budget, uint32_t copies)
    : budget_(budget), copies_(copies) {
  for (Kind& kind : variables) {
    largest_ = std::max(largest_, kind.num_bytes);
    pools_.push_back({std::move(kind), 0, {}});
  }
  LOCKSTEP_CHECK(budget_ / std::max(copies_, 1u) >= largest_);
}

std::optional<Tensor> HeldBudget::Acquire(size_t variable,
                                          absl::FunctionRef<GlobalStep(size_t)> step_of) {
  if (!HasRoom(variable, step_of)) return std::nullopt;
  Pool& pool = pools_[variable];
  const uint64_t bytes = pool.kind.num_bytes;
  Tensor buffer;
  if (pool.spare.empty()) {
    FreeSpare(bytes);
    buffer = Tensor(pool.kind.dtype, pool.kind.shape);
  } else {
    buffer = std::move(pool.spare.back());
    pool.spare.pop_back();
    spare_ -= bytes;
  }
  pool.held += bytes;
  held_ += bytes;
  return buffer;
}

void HeldBudget::Release(size_t variable, Tensor buffer) {
  Pool& pool = pools_[variable];
  pool.held -= pool.kind.num_bytes;
  held_ -= pool.kind.num_bytes;
  spare_ += pool.kind.num_bytes;
  pool.spare.push_back(std::move(buffer));
}

bool HeldBudget::HasRoom(size_t variable, absl::FunctionRef<GlobalStep(size_t)> step_of) const {
  const uint64_t bytes = pools_[variable].kind.num_bytes;
  if (bytes > budget_ - held_) return false;
  const uint64_t after = held_ + bytes;
  if (copies_ * largest_ <= budget_ - after) return true;

  // The variables in the order in which they close, latest first; `later` is what is held behind
  // the one at hand.
  std::vector<size_t> order(pools_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return step_of(a) > step_of(b); });
  uint64_t later = 0;
  bool is_earlier = false;  // than the variable that asks
  for (const size_t other : order) {
    if (is_earlier && later + copies_ * pools_[other].kind.num_bytes > budget_) return false;
    later += pools_[other].held;
    if (other == variable) {
      later += bytes;
      is_earlier = true;
    }
  }
  return true;
}

void HeldBudget::FreeSpare(uint64_t bytes) {
  for (Pool& pool : pools_) {
    while (!pool.spare.empty() && held_ + spare_ + bytes > budget_) {
      pool.spare.pop_back();
      spare_ -= pool.kind.num_bytes;
    }
  }
}

}  // namespace lockstep::ps
