// Chiefs: a standby takes a term, decides which member leads the pair, and commits steps. A chief
// that is dead or replaced stops acting, so neither needs a state: its orders stay in flight, and
// members refuse them by its term.
#include "tests/model/terms.h"
#include "tests/model/transitions.h"

namespace lockstep::model {
namespace {

class ChiefEvents {
 public:
  ChiefEvents(const Configuration& configuration, const State& state, ChiefId id, Transitions* out)
      : configuration_(configuration),
        rules_(configuration.rules),
        state_(state),
        id_(id),
        chief_(state.chiefs[id - 1]),
        out_(*out) {}

  void Append() {
    AppendAccepts(MemberName::kPrimary);
    AppendAccepts(MemberName::kCopy);
    if (chief_.decision == Decision::kNone) {
      AppendTakeOver();
      return;
    }
    AppendPlainAccepts();
    AppendChanges();
    AppendCommit();
    AppendPrimaryObeys();
    AppendCopyObeys();
  }

 private:
  State& Add(EventKind kind, MemberName member = MemberName::kPrimary) {
    out_.push_back({{kind, member, id_}, state_});
    return out_.back().next;
  }

  // A member accepts the chief's term and answers whether it leads.
  void AppendAccepts(MemberName name) {
    const bool asks = chief_.decision == Decision::kNone || !rules_.take_over_from_both;
    const bool is_primary = name == MemberName::kPrimary;
    const Member& member = is_primary ? state_.primary : state_.copy;
    const Answer known = is_primary ? chief_.primary : chief_.copy;
    if (!asks || known != Answer::kNone || !member.alive) return;
    if (!AcceptsTerm(configuration_, member.accepted, id_)) return;
    State& next = Add(EventKind::kMemberAccepts, name);
    (is_primary ? next.primary : next.copy).accepted = id_;
    Chief& chief = next.chiefs[id_ - 1];
    (is_primary ? chief.primary : chief.copy) = member.leads ? Answer::kLeads : Answer::kFollows;
  }

  void AppendPlainAccepts() {
    if (!configuration_.plain_shard) return;
    if (!AcceptsTerm(configuration_, state_.plain.accepted, id_)) return;
    Add(EventKind::kPlainAccepts).plain.accepted = id_;
  }

  void Decide(EventKind kind, Decision decision) { Add(kind).chiefs[id_ - 1].decision = decision; }

  void AppendTakeOver() {
    const bool both = chief_.primary == Answer::kFollows && chief_.copy == Answer::kFollows;
    const bool reuses_excluded = !rules_.excluded_stays_excluded &&
                                 chief_.primary == Answer::kLeads && chief_.copy != Answer::kNone;
    const bool trusts_one = !rules_.take_over_from_both && chief_.asked_anyone();
    if (chief_.primary == Answer::kLeads) {
      Decide(EventKind::kChiefDecides, Decision::kPrimaryAlone);
    }
    if (chief_.copy == Answer::kLeads) Decide(EventKind::kChiefDecides, Decision::kCopyLeads);
    if (both || reuses_excluded || trusts_one) {
      Decide(EventKind::kChiefDecides, Decision::kPair);
    }
  }

  // The chief suspects a member, rightly or not.
  void AppendChanges() {
    const bool pair = chief_.decision == Decision::kPair;
    const bool again = !rules_.one_decision_per_term;
    if (pair || (again && chief_.decision == Decision::kCopyLeads)) {
      Decide(EventKind::kChiefExcludesCopy, Decision::kPrimaryAlone);
    }
    if (pair || (again && chief_.decision == Decision::kPrimaryAlone)) {
      Decide(EventKind::kChiefPromotesCopy, Decision::kCopyLeads);
    }
  }

  // The leader answers tokens once every shard has closed the step.
  void AppendCommit() {
    const bool by_copy = chief_.decision == Decision::kCopyLeads;
    const Member& leader = by_copy ? state_.copy : state_.primary;
    if (!leader.alive || !Obeys(configuration_, leader.accepted, id_)) return;
    if (by_copy && !leader.leads) return;
    int closed = leader.version;
    if (configuration_.plain_shard && rules_.commit_after_every_shard) {
      if (!Obeys(configuration_, state_.plain.accepted, id_)) return;
      if (state_.plain.version < closed) closed = state_.plain.version;
    }
    const int known = rules_.commit_again_at_new_leader ? leader.committed : state_.settled_steps();
    if (closed <= known) return;
    State& next = Add(EventKind::kChiefCommits, by_copy ? MemberName::kCopy : MemberName::kPrimary);
    out_.back().broken = CommitAt(closed, by_copy ? &next.copy : &next.primary, &next);
  }

  void AppendPrimaryObeys() {
    const Member& primary = state_.primary;
    if (!primary.alive || !Obeys(configuration_, primary.accepted, id_)) return;
    const bool alone = chief_.decision == Decision::kPrimaryAlone;
    if (primary.leads && FirstOrderArrivesLate()) {
      Member& late = Add(EventKind::kMemberObeys, MemberName::kPrimary).primary;
      late.view = id_;
      late.leads = 0;
    }
    if (chief_.decision == Decision::kCopyLeads) return;  // which needs no primary
    if (primary.view == id_ && primary.leads >= alone) return;
    State& next = Add(EventKind::kMemberObeys, MemberName::kPrimary);
    next.primary.view = id_;
    next.primary.leads = alone;
    if (alone && !primary.leads) out_.back().broken = LawOfLeader(state_, primary, state_.copy);
  }

  void AppendCopyObeys() {
    const Member& copy = state_.copy;
    if (!copy.alive || !Obeys(configuration_, copy.accepted, id_)) return;
    const bool leads = chief_.decision == Decision::kCopyLeads;
    if (copy.leads && FirstOrderArrivesLate()) {
      Member& late = Add(EventKind::kMemberObeys, MemberName::kCopy).copy;
      late.view = id_;
      late.leads = 0;
      late.held = late.delta = 0;
    }
    if (chief_.decision == Decision::kPrimaryAlone) return;  // which needs no copy
    if (copy.view == id_ && copy.leads >= leads) return;
    if (leads && !copy.leads && configuration_.promotion_waits && copy.delta != 0) return;
    State& next = Add(EventKind::kMemberObeys, MemberName::kCopy);
    next.copy.view = id_;
    if (!leads || copy.leads) return;
    next.copy.leads = 1;
    next.copy.held = copy.delta;  // a sum received but not applied counts as held
    out_.back().broken = LawOfLeader(state_, copy, state_.primary);
  }

  // True if the order to continue as primary and copy, older than the decision, may still arrive.
  bool FirstOrderArrivesLate() const {
    const bool was_given = chief_.decision > Decision::kPair &&
                           chief_.primary == Answer::kFollows && chief_.copy == Answer::kFollows;
    return was_given && !configuration_.rules.older_orders_are_refused;
  }

  const Configuration& configuration_;
  const Rules& rules_;
  const State& state_;
  const ChiefId id_;
  const Chief& chief_;
  Transitions& out_;
};

}  // namespace

void AppendChiefs(const Configuration& configuration, const State& state, Transitions* out) {
  for (int id = 1; id <= configuration.chiefs; ++id) {
    ChiefEvents(configuration, state, static_cast<ChiefId>(id), out).Append();
  }
}

}  // namespace lockstep::model
