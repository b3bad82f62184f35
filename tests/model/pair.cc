// The two places and the plain shard. The one that serves takes gradients and sends their sum to
// its copy, the copy applies and acknowledges it, and the one that serves publishes. A new copy
// gets its state meanwhile.
#include "tests/model/terms.h"
#include "tests/model/transitions.h"

namespace lockstep::model {
namespace {

void Close(GradientSet set, Member* member) {
  member->history = Extend(member->history, member->version, set);
  ++member->version;
  member->held = 0;
  member->delta = 0;
  member->acknowledged = 0;
  member->lacks_last_version = 0;
}

// Whether `member` has published step `step` with another sum.
bool Differs(const Member& member, int step, GradientSet set) {
  return member.version > step && SetOfStep(member.history, step) != set;
}

// Of one member: as the one that serves, and as the copy of the other one.
class MemberEvents {
 public:
  MemberEvents(const Configuration& configuration, const State& state, int name, Transitions* out)
      : configuration_(configuration),
        rules_(configuration.rules),
        state_(state),
        name_(name),
        self_(state.members[name]),
        other_(state.members[1 - name]),
        out_(*out) {}

  void Append() {
    if (!self_.alive()) return;
    if (self_.serves) {
      AppendTake();
      AppendPublish();
      AppendCloses();
      AppendStateBegins();
      AppendStateCompletes();
    }
    AppendDeltaArrives();
    AppendDeltaApplied();
  }

 private:
  State& Add(EventKind kind) {
    out_.push_back({{kind, name_, 0}, state_});
    return out_.back().next;
  }

  bool MayClose() const {
    return self_.version < configuration_.steps && Size(self_.held) >= configuration_.required;
  }

  void AppendTake() {
    if (self_.alone || self_.has_taken() || !MayClose()) return;
    Member& next = Add(EventKind::kTake).members[name_];
    next.delta = self_.held;
    next.held = 0;
    next.acknowledged = 0;
  }

  void AppendPublish() {
    const bool has_begun = self_.awaits == Awaits::kNothing;
    const bool may_publish =
        self_.alone || self_.acknowledged || !has_begun || !rules_.publish_after_acknowledgment;
    if (!self_.has_taken() || !may_publish) return;
    Publish(EventKind::kPublish, self_.delta);
  }

  // Alone, at once.
  void AppendCloses() {
    if (self_.alone && !self_.has_taken() && MayClose()) Publish(EventKind::kCloses, self_.held);
  }

  void Publish(EventKind kind, GradientSet set) {
    State& next = Add(kind);
    if (other_.leads() && Differs(other_, self_.version, set)) {
      out_.back().broken = Law::kPublishedOnce;
    }
    Member& self = next.members[name_];
    Close(set, &self);
    if (!configuration_.grant_commits) return;
    const Law broken = CommitAt(self.version, &self, &next);
    if (out_.back().broken == Law::kNone) out_.back().broken = broken;
  }

  bool HasNewCopy() const {
    return !self_.alone && other_.alive() && !other_.serves && other_.accepted != 0 &&
           other_.view == self_.view && other_.order == self_.order;
  }

  // At the boundary before a step.
  void AppendStateBegins() {
    const bool is_due = self_.awaits == Awaits::kState && other_.awaits == Awaits::kState;
    if (!is_due || !HasNewCopy() || self_.has_taken()) return;
    State& next = Add(EventKind::kStateBegins);
    Member& copy = next.members[1 - name_];
    copy.awaits = Awaits::kRest;
    copy.version = self_.version;
    copy.lacks_last_version = 1;
    if (rules_.new_copy_gates_publication) next.members[name_].awaits = Awaits::kNothing;
  }

  // The copy has closed the step, and the one that serves has not shown it.
  void AppendStateCompletes() {
    if (other_.awaits != Awaits::kRest || !HasNewCopy()) return;
    if (!self_.has_taken() || !self_.acknowledged || other_.version != self_.version + 1) return;
    Member& copy = Add(EventKind::kStateCompletes).members[1 - name_];
    copy.history = Extend(self_.history, self_.version, self_.delta);
    copy.awaits = rules_.new_copy_closes_a_step ? Awaits::kOneStepMore : Awaits::kNothing;
  }

  // The copy receives the delta of the other one's step, for the first time or again. The other one
  // may have died since it sent the delta.
  void AppendDeltaArrives() {
    if (!other_.serves || !other_.has_taken() || self_.awaits == Awaits::kState) return;
    if (rules_.old_views_are_refused &&
        ViewNumber(configuration_, other_) < ViewNumber(configuration_, self_)) {
      return;
    }
    if (self_.version > other_.version) {  // a repetition, by its step
      if (other_.acknowledged) return;
      Add(EventKind::kDeltaArrives).members[1 - name_].acknowledged = 1;
      return;
    }
    if (self_.version < other_.version || self_.delta != 0) return;
    State& next = Add(EventKind::kDeltaArrives);
    Member& self = next.members[name_];
    self.delta = other_.delta;
    if (!rules_.acknowledge_after_apply) next.members[1 - name_].acknowledged = 1;
    if (!self_.serves) return;
    if (self_.held & other_.delta) out_.back().broken = Law::kSummedOnce;
    self.held |= other_.delta;
  }

  void AppendDeltaApplied() {
    if (self_.serves || self_.delta == 0) return;
    State& next = Add(EventKind::kDeltaApplied);
    if (other_.version == self_.version) next.members[1 - name_].acknowledged = 1;
    Member& self = next.members[name_];
    Close(self_.delta, &self);
    self.lacks_last_version = !rules_.copy_keeps_last_version;
    if (self.awaits == Awaits::kOneStepMore) self.awaits = Awaits::kNothing;
    if (self.awaits == Awaits::kRest) {
      self.history = 0;  // on state that is not there
      self.lacks_last_version = 1;
    }
  }

  const Configuration& configuration_;
  const Rules& rules_;
  const State& state_;
  const int name_;
  const Member& self_;
  const Member& other_;
  Transitions& out_;
};

}  // namespace

void AppendPair(const Configuration& configuration, const State& state, Transitions* out) {
  for (int name = 0; name < 2; ++name) MemberEvents(configuration, state, name, out).Append();
}

void AppendPlainShard(const Configuration& configuration, const State& state, Transitions* out) {
  if (!configuration.plain_shard || state.plain.version == configuration.steps) return;
  if (Size(state.plain.held) < configuration.required) return;
  out->push_back({{EventKind::kPlainCloses}, state});
  State& next = out->back().next;
  ++next.plain.version;
  next.plain.held = 0;
}

void AppendDeaths(const Configuration& configuration, const State& state, Transitions* out) {
  for (int name = 0; name < 2; ++name) {
    const Member& member = state.members[name];
    // The process that follows: tokens that were answered may still arrive.
    const Member empty{.life = Life::kReturned,
                       .accepted = 0,
                       .view = 0,
                       .awaits = Awaits::kState,
                       .committed = member.committed};
    if (member.life == Life::kFirst) {
      out->push_back({{EventKind::kMemberDies, name}, state});
      Member& next = out->back().next.members[name];
      next.life = Life::kDead;
      if (configuration.rules.restarted_member_obeys_nobody) continue;
      next = empty;
      next.awaits = Awaits::kNothing;
      next.serves = name == 0;
    } else if (member.life == Life::kDead && configuration.new_copies) {
      out->push_back({{EventKind::kMemberReturns, name}, state});
      out->back().next.members[name] = empty;
    }
  }
}

}  // namespace lockstep::model
