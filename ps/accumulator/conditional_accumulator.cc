#include "ps/accumulator/conditional_accumulator.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/check.h"

namespace lockstep::ps {
namespace {

bool SumsBefore(const HeldGradient& a, const HeldGradient& b) {
  return std::tie(a.worker, a.push_seq) < std::tie(b.worker, b.push_seq);
}

}  // namespace

bool ConditionalAccumulator::IsStale(GlobalStep local_step) const {
  if (rule_.kind != CountRule::kOneByOne) return local_step < step_;
  const int64_t own_step = step_.value() + num_accumulated();  // the one that it would be
  if (rule_.end.has_value() && own_step >= rule_.end->value()) return true;
  return rule_.max_staleness.has_value() && local_step.value() < own_step - *rule_.max_staleness;
}

bool ConditionalAccumulator::HasCounted(WorkerIndex worker) const {
  return rule_.kind == CountRule::kOncePerReplica && Find(worker) != nullptr;
}

PushStatus ConditionalAccumulator::Apply(HeldGradient&& gradient) {
  if (IsStale(gradient.local_step)) return PushStatus::kStale;
  LOCKSTEP_CHECK(!HasCounted(gradient.worker));
  const auto place = rule_.kind == CountRule::kOneByOne
                         ? held_.end()
                         : std::upper_bound(held_.begin(), held_.end(), gradient, SumsBefore);
  held_.insert(place, std::move(gradient));
  return PushStatus::kAccepted;
}

const HeldGradient* ConditionalAccumulator::Find(WorkerIndex worker) const {
  const auto found = std::ranges::lower_bound(held_, worker, {}, &HeldGradient::worker);
  return found != held_.end() && found->worker == worker ? &*found : nullptr;
}

std::optional<HeldGradient> ConditionalAccumulator::Remove(WorkerIndex worker) {
  const HeldGradient* const found = Find(worker);
  if (found == nullptr) return std::nullopt;
  const auto place = held_.begin() + (found - held_.data());
  HeldGradient removed = std::move(*place);
  held_.erase(place);
  return removed;
}

std::optional<TakenGradients> ConditionalAccumulator::Take(uint32_t required) {
  LOCKSTEP_CHECK(required > 0);
  if (held_.size() < required) return std::nullopt;
  TakenGradients taken{.step = step_, .gradients = {}};
  if (rule_.kind == CountRule::kOneByOne) {
    taken.gradients.push_back(std::move(held_.front()));
    held_.erase(held_.begin());
  } else {
    taken.gradients = std::exchange(held_, {});
  }
  taken.divisor = static_cast<int>(taken.gradients.size());
  step_ = step_.next();
  return taken;
}

}  // namespace lockstep::ps
