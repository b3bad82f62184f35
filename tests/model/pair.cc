// The pair and the plain shard. The primary takes gradients and sends their sum to the copy, the
// copy applies and acknowledges it, and the primary publishes.
#include "tests/model/terms.h"
#include "tests/model/transitions.h"

namespace lockstep::model {
namespace {

State& Add(EventKind kind, MemberName member, const State& state, Transitions* out) {
  out->push_back({{kind, member, 0}, state});
  return out->back().next;
}

void Close(GradientSet set, Member* member) {
  member->history = Extend(member->history, member->version, set);
  ++member->version;
  member->held = 0;
  member->delta = 0;
  member->lacks_last_version = 0;
}

// `leader` has closed a step in the newest transition.
void CommitIfGranted(const Configuration& configuration, Member* leader, Transitions* out) {
  if (!configuration.grant_commits) return;
  const Law broken = CommitAt(leader->version, leader, &out->back().next);
  if (out->back().broken == Law::kNone) out->back().broken = broken;
}

// Whether `member` has published step `step` with another sum.
bool Differs(const Member& member, int step, GradientSet set) {
  return member.version > step && SetOfStep(member.history, step) != set;
}

// The copy receives the delta of the primary's step, for the first time or again. The primary may
// have died since it sent the delta.
void AppendDeltaArrives(const Configuration& configuration, const State& state, Transitions* out) {
  const Rules& rules = configuration.rules;
  const Member& primary = state.primary;
  const Member& copy = state.copy;
  if (primary.delta == 0) return;
  if (rules.old_views_are_refused &&
      ViewNumber(configuration, primary) < ViewNumber(configuration, copy)) {
    return;
  }
  if (copy.version > primary.version) {  // a repetition, by its step
    if (state.acknowledged) return;
    Add(EventKind::kDeltaArrives, MemberName::kCopy, state, out).acknowledged = 1;
    return;
  }
  if (copy.version < primary.version || copy.delta != 0) return;
  State& next = Add(EventKind::kDeltaArrives, MemberName::kCopy, state, out);
  next.copy.delta = primary.delta;
  if (!rules.acknowledge_after_apply) next.acknowledged = 1;
  if (!copy.leads) return;
  if (copy.held & primary.delta) out->back().broken = Law::kSummedOnce;
  next.copy.held |= primary.delta;
}

}  // namespace

void AppendPrimary(const Configuration& configuration, const State& state, Transitions* out) {
  const Member& primary = state.primary;
  if (!primary.alive) return;
  if (primary.delta == 0) {
    if (primary.version == configuration.steps || Size(primary.held) < configuration.required) {
      return;
    }
    State& next = Add(EventKind::kTake, MemberName::kPrimary, state, out);
    next.primary.delta = primary.held;
    next.primary.held = 0;
    next.acknowledged = 0;
    return;
  }
  const bool may_publish =
      primary.leads || state.acknowledged || !configuration.rules.publish_after_acknowledgment;
  if (!may_publish) return;
  State& next = Add(EventKind::kPublish, MemberName::kPrimary, state, out);
  next.acknowledged = 0;
  if (state.copy.leads && Differs(state.copy, primary.version, primary.delta)) {
    out->back().broken = Law::kPublishedOnce;
  }
  Close(primary.delta, &next.primary);
  CommitIfGranted(configuration, &next.primary, out);
}

void AppendCopy(const Configuration& configuration, const State& state, Transitions* out) {
  const Member& primary = state.primary;
  const Member& copy = state.copy;
  if (!copy.alive) return;
  AppendDeltaArrives(configuration, state, out);
  if (!copy.leads && copy.delta != 0) {
    State& next = Add(EventKind::kDeltaApplied, MemberName::kCopy, state, out);
    if (primary.version == copy.version) next.acknowledged = 1;
    Close(copy.delta, &next.copy);
    next.copy.lacks_last_version = !configuration.rules.copy_keeps_last_version;
  }
  if (copy.leads && copy.version < configuration.steps &&
      Size(copy.held) >= configuration.required) {
    State& next = Add(EventKind::kCopyCloses, MemberName::kCopy, state, out);
    if (Differs(primary, copy.version, copy.held)) out->back().broken = Law::kPublishedOnce;
    Close(copy.held, &next.copy);
    CommitIfGranted(configuration, &next.copy, out);
  }
}

void AppendPlainShard(const Configuration& configuration, const State& state, Transitions* out) {
  if (!configuration.plain_shard || state.plain.version == configuration.steps) return;
  if (Size(state.plain.held) < configuration.required) return;
  State& next = Add(EventKind::kPlainCloses, MemberName::kPrimary, state, out);
  ++next.plain.version;
  next.plain.held = 0;
}

void AppendDeaths(const Configuration& configuration, const State& state, Transitions* out) {
  for (const MemberName name : {MemberName::kPrimary, MemberName::kCopy}) {
    const bool is_primary = name == MemberName::kPrimary;
    if (!(is_primary ? state.primary : state.copy).alive) continue;
    State& next = Add(EventKind::kMemberDies, name, state, out);
    Member& member = is_primary ? next.primary : next.copy;
    if (configuration.rules.restarted_member_obeys_nobody) {
      member.alive = 0;  // its successor accepts no term and answers nothing
    } else {
      const uint8_t answered = member.committed;  // tokens that may still arrive
      member = Member{.accepted = 0, .view = 0};
      member.committed = answered;
    }
  }
}

}  // namespace lockstep::model
