#include "ps/shard/held_budget.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace lockstep::ps {

HeldBudget::HeldBudget(std::vector<Kind> variables, uint64_t budget, uint32_t copies)
    : budget_(budget), copies_(copies) {
  for (Kind& kind : variables) {
    Pool pool{std::move(kind)};
    if (!pool.kind.is_sparse) pool.reserve = pool.kind.num_bytes;
    largest_ = std::max(largest_, pool.reserve);
    pools_.push_back(std::move(pool));
  }
  LOCKSTEP_CHECK(budget_ / std::max(copies_, 1u) >= largest_);
}

std::optional<Tensor> HeldBudget::Acquire(size_t variable, DType type, uint64_t bytes,
                                          absl::FunctionRef<GlobalStep(size_t)> step_of) {
  Pool& pool = pools_[variable];
  if (!pool.kind.is_sparse) {
    bytes = static_cast<uint64_t>(pool.kind.shape.num_elements()) * SizeOf(type);
    LOCKSTEP_CHECK(bytes <= pool.kind.num_bytes);
  }
  pool.reserve = std::max(pool.reserve, bytes);
  largest_ = std::max(largest_, bytes);
  if (!HasRoom(variable, bytes, step_of)) return std::nullopt;
  Tensor buffer;
  if (pool.kind.is_sparse) {
    FreeSpare(bytes);
    buffer = Tensor(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
  } else if (std::optional<Tensor> spare = TakeSpare(&pool, type)) {
    buffer = *std::move(spare);
  } else {
    FreeSpare(bytes);
    buffer = Tensor(type, pool.kind.shape);
  }
  Hold(&pool, bytes);
  return buffer;
}

bool HeldBudget::Reserve(size_t variable, uint64_t bytes,
                         absl::FunctionRef<GlobalStep(size_t)> step_of) {
  LOCKSTEP_CHECK(bytes <= pools_[variable].kind.num_bytes);
  if (!HasRoom(variable, bytes, step_of)) return false;
  FreeSpare(bytes);
  Hold(&pools_[variable], bytes);
  return true;
}

void HeldBudget::Hold(Pool* pool, uint64_t bytes) {
  pool->held += bytes;
  ++pool->num_held;
  held_ += bytes;
}

void HeldBudget::GiveBack(size_t variable, uint64_t bytes) {
  Pool& pool = pools_[variable];
  pool.held -= bytes;
  --pool.num_held;
  held_ -= bytes;
}

void HeldBudget::Borrow(uint64_t bytes) {
  borrowed_ += bytes;
  FreeSpare(0);
}

void HeldBudget::Release(size_t variable, Tensor buffer) {
  Pool& pool = pools_[variable];
  const uint64_t bytes = buffer.num_bytes();
  if (buffer.is_borrowed()) {
    borrowed_ -= bytes;
    return;
  }
  GiveBack(variable, bytes);
  if (pool.kind.is_sparse) return;
  spare_ += bytes;
  pool.spare.push_back(std::move(buffer));
}

bool HeldBudget::HasRoom(size_t variable, uint64_t bytes,
                         absl::FunctionRef<GlobalStep(size_t)> step_of) const {
  const Pool& pool = pools_[variable];
  const bool fits = held_ <= budget_ && bytes <= budget_ - held_;
  if (!fits && !pool.kind.is_sparse) return false;
  if (fits && copies_ * largest_ <= budget_ - held_ - bytes) return true;

  // The variables in the order in which they close, latest first; `later` is what is held behind
  // the one at hand.
  std::vector<size_t> order(pools_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return step_of(a) > step_of(b); });
  uint64_t later = 0;
  bool is_earlier = false;  // than the variable that asks
  for (const size_t other : order) {
    if (is_earlier && (!fits || later + copies_ * pools_[other].reserve > budget_)) return false;
    later += pools_[other].held;
    if (other == variable) {
      later += bytes;
      is_earlier = true;
    }
  }
  return fits || pool.num_held < copies_;
}

std::optional<Tensor> HeldBudget::TakeSpare(Pool* pool, DType type) {
  const auto spare = std::ranges::find(pool->spare, type, &Tensor::dtype);
  if (spare == pool->spare.end()) return std::nullopt;
  Tensor buffer = std::move(*spare);
  *spare = std::move(pool->spare.back());
  pool->spare.pop_back();
  spare_ -= buffer.num_bytes();
  return buffer;
}

void HeldBudget::FreeSpare(uint64_t bytes) {
  const auto is_full = [&] { return held_ + borrowed_ + spare_ + bytes > budget_; };
  for (size_t i = 0; i < pools_.size() && spare_ > 0 && is_full(); ++i) {
    Pool& pool = pools_[i];
    while (!pool.spare.empty() && is_full()) {
      spare_ -= pool.spare.back().num_bytes();
      pool.spare.pop_back();
    }
  }
}

}  // namespace lockstep::ps
