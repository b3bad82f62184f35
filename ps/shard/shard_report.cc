#include <utility>

#include "ps/shard/shard_impl.h"

namespace lockstep::ps {
namespace {

constexpr size_t kMaxPendingReported = 8;

}  // namespace

ShardReport Shard::Impl::Report() const {
  absl::MutexLock lock(&mutex_);
  ShardReport report;
  report.state = StateNow();
  report.accepted = accepted_;
  report.stale = stale_;
  report.duplicates = duplicates_;
  report.rejected = rejected_;
  report.waiting_pulls = static_cast<uint32_t>(pulls_.size());
  if (Hosted() == nullptr) return report;

  const EpochState& state = *state_;
  report.variables = static_cast<uint32_t>(state.catalog.size());
  report.bytes = state.catalog.num_bytes();
  report.held_bytes = state.budget.held_bytes();
  if (state.asynchronous.has_value()) report.staleness = state.asynchronous->staleness.counts();
  if (state.tokens != nullptr) report.waiting_dequeues = state.tokens->num_waiting();
  const uint32_t required = state.step.terms().has_value() ? state.step.terms()->required
                                                           : state.config.replicas_to_aggregate();
  for (size_t variable = 0; variable < state.catalog.size(); ++variable) {
    if (state.step.IsTaken(variable)) continue;
    if (++report.open_variables > kMaxPendingReported) continue;
    PendingVariable pending{.name = state.catalog[variable].name, .required = required};
    for (const HeldGradient& gradient : state.step.accumulator(variable).held()) {
      pending.from.push_back(gradient.worker);
    }
    pending.have = static_cast<uint32_t>(pending.from.size());
    report.pending.push_back(std::move(pending));
  }
  return report;
}

}  // namespace lockstep::ps
