#include "ps/shard/held_budget.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/checked.h"

namespace lockstep::ps {
namespace {

uint64_t CopiesOf(uint32_t copies, uint64_t bytes) {
  return CheckedMultiplyBytes(copies, bytes).value_or(std::numeric_limits<uint64_t>::max());
}

}  // namespace

HeldBudget::HeldBudget(std::vector<Kind> variables, uint64_t budget, uint32_t copies,
                       uint64_t replica_bytes)
    : wanted_(budget),
      budget_(budget),
      copies_(copies),
      replica_bytes_(replica_bytes),
      order_(variables.size()) {
  for (Kind& kind : variables) {
    Pool pool{std::move(kind)};
    if (!pool.kind.is_sparse) pool.reserve = pool.kind.num_bytes;
    largest_ = std::max(largest_, pool.reserve);
    if (!pool.kind.is_frozen) order_.Add(pools_.size());
    pools_.push_back(std::move(pool));
    UpdateOrder(pools_.size() - 1);
  }
  LOCKSTEP_CHECK(budget_ / std::max(copies_, 1u) >= largest_);
}

void HeldBudget::SetLimit(std::function<uint64_t(uint32_t)> limit, uint32_t replicas) {
  limit_ = std::move(limit);
  replicas_ = replicas;
  AskLimit();
}

uint64_t HeldBudget::LimitedBudget() const {
  if (limit_ == nullptr) return wanted_;
  return std::min(wanted_, std::max(limit_(replicas_), CopiesOf(copies_, largest_)));
}

void HeldBudget::AskLimit() {
  if (limit_ == nullptr) return;
  const uint64_t limited = LimitedBudget();
  const bool shrinks = limited < budget_;
  if (shrinks && held_ > 0) return;
  budget_ = limited;
  if (shrinks) FreeSpare(0);
}

void HeldBudget::SetReplicas(uint32_t replicas, uint32_t copies) {
  copies_ = std::max(copies_, copies);
  replicas_ = replicas;
  wanted_ = std::max({wanted_, CopiesOf(replicas, replica_bytes_), CopiesOf(copies_, largest_)});
  budget_ = std::max(budget_, LimitedBudget());
  for (size_t variable = 0; variable < pools_.size(); ++variable) UpdateOrder(variable);
}

std::optional<Tensor> HeldBudget::Acquire(size_t variable, DType type, uint64_t bytes) {
  AskLimit();
  Pool& pool = pools_[variable];
  if (!pool.kind.is_sparse) {
    bytes = static_cast<uint64_t>(pool.kind.shape.num_elements()) * SizeOf(type);
    LOCKSTEP_CHECK(bytes <= pool.kind.num_bytes);
  } else if (bytes > pool.reserve) {
    pool.reserve = bytes;
    largest_ = std::max(largest_, bytes);
    UpdateOrder(variable);
  }
  if (!HasRoom(variable, bytes)) return std::nullopt;
  std::optional<Tensor> buffer;
  if (!pool.kind.is_sparse) buffer = TakeSpare(&pool, type);
  if (!buffer.has_value()) {
    FreeSpare(bytes);
    buffer = pool.kind.is_sparse
                 ? Tensor::TryMake(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}))
                 : Tensor::TryMake(type, pool.kind.shape);
  }
  if (buffer.has_value()) Hold(variable, bytes);
  return buffer;
}

bool HeldBudget::Reserve(size_t variable, uint64_t bytes) {
  LOCKSTEP_CHECK(bytes <= pools_[variable].kind.num_bytes);
  AskLimit();
  if (!HasRoom(variable, bytes)) return false;
  FreeSpare(bytes);
  Hold(variable, bytes);
  return true;
}

void HeldBudget::Hold(size_t variable, uint64_t bytes) {
  Pool& pool = pools_[variable];
  pool.held += bytes;
  ++pool.num_held;
  held_ += bytes;
  UpdateOrder(variable);
}

void HeldBudget::GiveBack(size_t variable, uint64_t bytes) {
  Pool& pool = pools_[variable];
  pool.held -= bytes;
  --pool.num_held;
  held_ -= bytes;
  UpdateOrder(variable);
}

void HeldBudget::UpdateOrder(size_t variable) {
  const Pool& pool = pools_[variable];
  order_.Set(variable, pool.held, CopiesOf(copies_, pool.reserve));
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
    return FreeOrDefer(std::move(buffer));
  }
  GiveBack(variable, bytes);
  if (pool.kind.is_sparse) return FreeOrDefer(std::move(buffer));
  spare_ += bytes;
  pool.spare.push_back(std::move(buffer));
}

bool HeldBudget::HasRoom(size_t variable, uint64_t bytes) const {
  const Pool& pool = pools_[variable];
  const bool fits = held_ <= budget_ && bytes <= budget_ - held_;
  if (!fits && !pool.kind.is_sparse) return false;
  if (fits && CopiesOf(copies_, largest_) <= budget_ - held_ - bytes) return true;
  const ClosingOrder::Earlier earlier = order_.EarlierThan(variable, bytes);
  if (earlier.any && (!fits || earlier.most > budget_)) return false;
  return fits || pool.num_held < copies_;
}

bool HeldBudget::HasRoomWithout(size_t variable, uint32_t count, uint64_t freed,
                                uint64_t bytes) const {
  const Pool& pool = pools_[variable];
  const uint64_t held = held_ - freed;
  if (held <= budget_ && bytes <= budget_ - held) return true;
  return pool.kind.is_sparse && pool.num_held - count < copies_;
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
      FreeOrDefer(std::move(pool.spare.back()));
      pool.spare.pop_back();
    }
  }
}

void HeldBudget::FreeOrDefer(Tensor buffer) {
  // The last reference to borrowed memory unmaps it.
  if (buffer.is_borrowed() || buffer.num_bytes() >= kFreedLater) {
    freed_.push_back(std::move(buffer));
  }
}

void HeldBudget::TakeFreed(absl::InlinedVector<Tensor, 4>* freed) {
  std::ranges::move(freed_, std::back_inserter(*freed));
  freed_.clear();
}

}  // namespace lockstep::ps
