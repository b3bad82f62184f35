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
    AppendAccepts(0);
    AppendAccepts(1);
    if (chief_.decision == Decision::kNone) {
      AppendTakeOver();
      return;
    }
    AppendPlainAccepts();
    AppendChanges();
    AppendNewCopy();
    AppendCommit();
    AppendServingObeys();
    AppendCopyObeys();
    AppendLateOrders();
  }

 private:
  State& Add(EventKind kind, int member = 0) {
    out_.push_back({{kind, member, id_}, state_});
    return out_.back().next;
  }

  const Member& serving() const { return state_.members[chief_.serving]; }
  int other_name() const { return 1 - chief_.serving; }
  const Member& other() const { return state_.members[other_name()]; }
  bool HasObeyed(const Member& member) const {
    return member.view == id_ && member.order >= chief_.order;
  }

  static Answer AnswerOf(const Member& member) {
    if (member.leads()) return Answer::kLeads;
    const bool lacks_state = !member.serves && member.awaits != Awaits::kNothing;
    return lacks_state ? Answer::kAwaits : Answer::kFollows;
  }

  // A member accepts the chief's term and answers what it is.
  void AppendAccepts(int name) {
    const bool asks = chief_.decision == Decision::kNone || !rules_.take_over_from_both;
    const Member& member = state_.members[name];
    if (!asks || !member.has_variables()) return;
    const bool orders_answers =
        rules_.copy_answers_last && rules_.take_over_from_both && configuration_.new_copies;
    // The answer of a process that has been started again since is void.
    const bool is_void = orders_answers && member.life == Life::kReturned && member.accepted != id_;
    if (chief_.answers[name] != Answer::kNone && !is_void) return;
    const bool has_accepted = orders_answers && member.accepted == id_;
    if (!has_accepted && !AcceptsTerm(configuration_, member.accepted, id_)) return;
    const Answer other = chief_.answers[1 - name];
    if (orders_answers && !member.serves && other == Answer::kNone) return;
    State& next = Add(EventKind::kMemberAccepts, name);
    next.members[name].accepted = id_;
    Chief& chief = next.chiefs[id_ - 1];
    chief.answers[name] = AnswerOf(member);
    // Two that serve are none: the other one's answer is outdated.
    if (orders_answers && member.serves && other == Answer::kFollows) {
      chief.answers[1 - name] = Answer::kNone;
    }
  }

  void AppendPlainAccepts() {
    if (!configuration_.plain_shard) return;
    if (!AcceptsTerm(configuration_, state_.plain.accepted, id_)) return;
    Add(EventKind::kPlainAccepts).plain.accepted = id_;
  }

  // Whether the chief may give one more order in its term: they are numbered from 0 to 3.
  bool HasOrders(int number) const { return chief_.order + number <= 3; }

  void TakeOver(Decision decision, int serving) {
    Chief& next = Add(EventKind::kChiefDecides, serving).chiefs[id_ - 1];
    next.decision = decision;
    next.serving = static_cast<uint8_t>(serving);
  }

  void AppendTakeOver() {
    const auto& answers = chief_.answers;
    const int serving = state_.members[0].serves ? 0 : 1;
    for (int name = 0; name < 2; ++name) {
      const bool lacks_copy = answers[name] == Answer::kFollows && state_.members[name].serves &&
                              answers[1 - name] == Answer::kAwaits && rules_.awaiting_copy_is_none;
      if (answers[name] == Answer::kLeads || lacks_copy) TakeOver(Decision::kAlone, name);
      const bool reuses_excluded = !rules_.excluded_stays_excluded &&
                                   answers[name] == Answer::kLeads &&
                                   answers[1 - name] != Answer::kNone;
      if (reuses_excluded) TakeOver(Decision::kPair, name);
    }
    const bool trusts_one = !rules_.take_over_from_both && chief_.asked_anyone();
    const bool takes_any = !rules_.awaiting_copy_is_none && answers[serving] == Answer::kFollows &&
                           answers[1 - serving] == Answer::kAwaits;
    if (chief_.took_over_pair() || trusts_one || takes_any) TakeOver(Decision::kPair, serving);
  }

  // `serving` alone from now on: event and order.
  void Change(EventKind kind, int serving) {
    Chief& next = Add(kind, serving).chiefs[id_ - 1];
    next.decision = Decision::kAlone;
    next.serving = static_cast<uint8_t>(serving);
    ++next.order;
  }

  // The chief suspects a member, rightly or not.
  void AppendChanges() {
    if (!HasOrders(1)) return;
    const bool again = !rules_.one_decision_per_term && chief_.decision == Decision::kAlone;
    const bool has_new_copy =
        chief_.decision == Decision::kMakeCopy || chief_.decision == Decision::kTransfer;
    if (chief_.decision == Decision::kPair || has_new_copy) {
      Change(EventKind::kChiefExcludesCopy, chief_.serving);
    }
    if (chief_.decision == Decision::kPair || again) {
      Change(EventKind::kChiefPromotesCopy, other_name());
    }
  }

  // A shard that is served alone gets a new copy, whatever the other member is.
  void AppendNewCopy() {
    if (!configuration_.new_copies) return;
    const bool is_alone = chief_.decision == Decision::kAlone && serving().alive() &&
                          serving().leads() && HasObeyed(serving());
    if (is_alone && other().alive() && HasOrders(2)) {
      Chief& next = Add(EventKind::kChiefAttaches, other_name()).chiefs[id_ - 1];
      next.decision = Decision::kMakeCopy;
      ++next.order;
    }
    // Both say so, the one that serves last.
    const bool is_complete = other().awaits == Awaits::kNothing || !rules_.awaiting_copy_is_none;
    if (chief_.decision == Decision::kTransfer && other().alive() && is_complete &&
        HasObeyed(other()) && serving().alive() && HasObeyed(serving())) {
      Add(EventKind::kChiefPairs, other_name()).chiefs[id_ - 1].decision = Decision::kPair;
    }
  }

  // The leader answers tokens once every shard has closed the step.
  void AppendCommit() {
    const Member& leader = serving();
    if (!leader.alive() || !Obeys(configuration_, leader.accepted, id_) || !leader.serves) return;
    int closed = leader.version;
    if (configuration_.plain_shard && rules_.commit_after_every_shard) {
      if (!Obeys(configuration_, state_.plain.accepted, id_)) return;
      if (state_.plain.version < closed) closed = state_.plain.version;
    }
    const int known = rules_.commit_again_at_new_leader ? leader.committed : state_.settled_steps();
    if (closed <= known) return;
    State& next = Add(EventKind::kChiefCommits, chief_.serving);
    out_.back().broken = CommitAt(closed, &next.members[chief_.serving], &next);
  }

  void AppendServingObeys() {
    const Member& member = serving();
    if (chief_.decision == Decision::kMakeCopy || HasObeyed(member)) return;
    if (!member.alive() || !Obeys(configuration_, member.accepted, id_)) return;
    const bool alone = chief_.decision == Decision::kAlone;
    const bool is_promoted = alone && !member.serves;
    if (is_promoted && configuration_.promotion_waits && member.delta != 0) return;
    if (is_promoted && rules_.awaiting_copy_is_none && member.awaits != Awaits::kNothing) return;
    State& next = Add(EventKind::kMemberObeys, chief_.serving);
    Member& obeys = next.members[chief_.serving];
    obeys.view = id_;
    obeys.order = chief_.order;
    obeys.alone = alone;
    obeys.awaits = chief_.decision == Decision::kTransfer ? Awaits::kState : Awaits::kNothing;
    if (is_promoted) {
      obeys.serves = 1;
      obeys.held = member.delta;  // a sum received but not applied counts as held
    }
    if (alone && !member.leads()) out_.back().broken = LawOfLeader(state_, member, other());
  }

  void AppendCopyObeys() {
    const Member& member = other();
    const bool makes = chief_.decision == Decision::kMakeCopy;
    if (!makes && chief_.decision != Decision::kPair) return;  // which needs no copy
    if (!member.alive() || HasObeyed(member)) return;
    // The order brings the term to one that has accepted none.
    const bool accepts = makes && AcceptsTerm(configuration_, member.accepted, id_);
    if (!accepts && !Obeys(configuration_, member.accepted, id_)) return;
    State& next = Add(EventKind::kMemberObeys, other_name());
    Member& copy = next.members[other_name()];
    if (makes) {
      copy = {.life = member.life,
              .accepted = id_,
              .awaits = Awaits::kState,
              .committed = member.committed};
      next.chiefs[id_ - 1].decision = Decision::kTransfer;
    }
    copy.view = id_;
    copy.order = chief_.order;
  }

  // The order to go on as a pair, older than the decision.
  void AppendLateOrders() {
    if (rules_.older_orders_are_refused || chief_.order == 0 || !chief_.took_over_pair()) return;
    for (int name = 0; name < 2; ++name) {
      const Member& member = state_.members[name];
      if (!member.alive() || !member.leads() || !Obeys(configuration_, member.accepted, id_)) {
        continue;
      }
      Member& late = Add(EventKind::kMemberObeys, name).members[name];
      late.view = id_;
      late.order = 0;
      late.alone = 0;
      if (name == 0) continue;
      late.serves = 0;
      late.held = late.delta = 0;
    }
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
