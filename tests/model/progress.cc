#include "tests/model/progress.h"

#include <algorithm>

#include "tests/model/terms.h"

namespace lockstep::model {
namespace {

bool HasBegun(const State& state, ChiefId chief) {
  return chief == 1 || state.chiefs[chief - 1].asked_anyone();
}

// True if `predicate` holds for every chief of the highest term that any chief has asked for. There
// are two of them if they ask for an equal term.
template <typename Predicate>
bool AllOfNewest(const Configuration& configuration, const State& state, Predicate&& predicate) {
  int highest = 0;
  for (ChiefId id = 1; id <= configuration.chiefs; ++id) {
    if (HasBegun(state, id)) highest = std::max(highest, configuration.TermOf(id));
  }
  for (ChiefId id = 1; id <= configuration.chiefs; ++id) {
    if (configuration.TermOf(id) == highest && !predicate(id)) return false;
  }
  return true;
}

bool IsNewest(const Configuration& configuration, const State& state, ChiefId chief) {
  return !AllOfNewest(configuration, state, [&](ChiefId id) { return id != chief; });
}

// True if no newest chief has decided and a living member refuses each: they take a higher term.
bool NewestAreRefused(const Configuration& configuration, const State& state) {
  if (!configuration.rules.refused_chief_raises_term) return false;
  return AllOfNewest(configuration, state, [&](ChiefId id) {
    const auto refuses = [&](const Member& member) {
      return member.has_variables() && member.accepted != id &&
             !AcceptsTerm(configuration, member.accepted, id);
    };
    return state.chiefs[id - 1].decision == Decision::kNone &&
           (refuses(state.members[0]) || refuses(state.members[1]));
  });
}

// The other member cannot know whether this one has shown more, unless it serves alone.
bool MissesAnswer(const State& state, int member) {
  return !state.members[member].has_variables() && !state.members[1 - member].leads();
}

// It has no variables, or lacks state.
bool IsLost(const Member& member) {
  return !member.has_variables() || (!member.serves && member.awaits != Awaits::kNothing);
}

bool MustGoBackAs(const State& state, const Chief& chief) {
  const bool serving_is_lost = IsLost(state.members[chief.serving]);
  switch (chief.decision) {
    case Decision::kNone:
      return MissesAnswer(state, 0) || MissesAnswer(state, 1);
    case Decision::kPair:
      return serving_is_lost && IsLost(state.members[1 - chief.serving]);
    case Decision::kAlone:
    case Decision::kMakeCopy:
    case Decision::kTransfer:
      return serving_is_lost;
  }
  return false;
}

}  // namespace

bool IsFinished(const Configuration& configuration, const State& state) {
  return !AllOfNewest(configuration, state, [&](ChiefId id) {
    const Chief& chief = state.chiefs[id - 1];
    const Member& leader = state.members[chief.serving];
    return chief.decision == Decision::kNone || !leader.has_variables() ||
           leader.committed != configuration.steps;
  });
}

bool MustGoBack(const Configuration& configuration, const State& state) {
  return AllOfNewest(configuration, state,
                     [&](ChiefId id) { return MustGoBackAs(state, state.chiefs[id - 1]); });
}

bool HappensWhenHealed(const Configuration& configuration, const State& state, const Event& event) {
  const auto is_newest = [&](int chief) {
    return IsNewest(configuration, state, static_cast<ChiefId>(chief));
  };
  const auto follows_newest = [&](const Member& member) {
    return is_newest(member.accepted) && member.view == member.accepted;
  };
  switch (event.kind) {
    case EventKind::kMemberDies:
    case EventKind::kMemberReturns:
    case EventKind::kWorkerDies:
    case EventKind::kChiefAttaches:
      return false;
    case EventKind::kMemberAccepts:
      return is_newest(event.who) || (!HasBegun(state, static_cast<ChiefId>(event.who)) &&
                                      NewestAreRefused(configuration, state));
    case EventKind::kPlainAccepts:
    case EventKind::kChiefDecides:
    case EventKind::kChiefCommits:
    case EventKind::kChiefPairs:
    case EventKind::kMemberObeys:
      return is_newest(event.who);
    case EventKind::kChiefExcludesCopy: {
      const Member& copy = state.members[1 - event.member];
      const bool is_anothers = copy.awaits == Awaits::kState && !is_newest(copy.accepted);
      return is_newest(event.who) && (!copy.has_variables() || is_anothers);
    }
    case EventKind::kChiefPromotesCopy:
      // `member` serves from then on, and the other one is lost.
      return is_newest(event.who) && !state.members[1 - event.member].has_variables();
    case EventKind::kTake:  // under a grant of the newest chief
    case EventKind::kCloses:
      return follows_newest(state.members[event.member]);
    case EventKind::kToken:
      return state.members[event.member].alive();
    default:
      return true;
  }
}

}  // namespace lockstep::model
