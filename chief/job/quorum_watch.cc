#include "chief/job/quorum_watch.h"

#include <algorithm>
#include <limits>

namespace lockstep::chief {
namespace {

constexpr int kCertainAnswers = 2;

}  // namespace

QuorumWatch::QuorumWatch(const QuorumRules& rules, Membership* membership, const ViewKeeper* views)
    : rules_(rules),
      membership_(membership),
      views_(views),
      quorum_{.possible = std::numeric_limits<int64_t>::max()} {}

ReplicaCounts QuorumWatch::Count(GlobalStep step) {
  // A shard may not know yet who is gone: it would count late pushes of theirs beside fewer others.
  // So a worker counts from when all shards have it as a member until none has.
  const bool shrinks = rules_.on_shortage == OnShortage::kShrink;
  ReplicaCounts counts =
      membership_->CountFor(step, shrinks ? views_->confirmed() : membership_->Live());
  counts.stalled = stall_.answers >= kCertainAnswers && stall_.step == step &&
                   stall_.membership == membership_->changes();
  return counts;
}

const Quorum& QuorumWatch::Evaluate(GlobalStep step) {
  quorum_ = EvaluateQuorum(rules_, Count(step), step);
  return quorum_;
}

uint32_t QuorumWatch::CountAble(GlobalStep step) { return Count(step).able; }

void QuorumWatch::AddProgress(GlobalStep step, const ProgressByShard& progress, bool reaches_all) {
  const uint32_t able = membership_->CountFor(step, membership_->Live()).able;
  const std::optional<ShardProgress>& step_shard = progress[kStepShard];
  const bool is_open = std::ranges::any_of(progress, [](const std::optional<ShardProgress>& shard) {
    return shard.has_value() && shard->open_variables() > 0;
  });
  const bool is_stalled = rules_.counts_tokens && reaches_all && is_open && able > 0 &&
                          step_shard.has_value() && step_shard->waiting_dequeues() >= able;
  const bool is_same = stall_.step == step && stall_.membership == membership_->changes();
  stall_ = {step, membership_->changes(), is_stalled ? (is_same ? stall_.answers + 1 : 1) : 0};
}

}  // namespace lockstep::chief
