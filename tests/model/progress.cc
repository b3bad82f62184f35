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
      return member.alive && member.accepted != id &&
             !AcceptsTerm(configuration, member.accepted, id);
    };
    return state.chiefs[id - 1].decision == Decision::kNone &&
           (refuses(state.primary) || refuses(state.copy));
  });
}

bool MustGoBackAs(const State& state, const Chief& chief) {
  const Member& primary = state.primary;
  const Member& copy = state.copy;
  switch (chief.decision) {
    case Decision::kNone:
      return (!primary.alive && !(copy.alive && copy.leads)) ||
             (!copy.alive && !(primary.alive && primary.leads));
    case Decision::kPair:
      return !primary.alive && !copy.alive;
    case Decision::kPrimaryAlone:
      return !primary.alive;
    case Decision::kCopyLeads:
      return !copy.alive;
  }
  return false;
}

}  // namespace

bool IsFinished(const Configuration& configuration, const State& state) {
  return !AllOfNewest(configuration, state, [&](ChiefId id) {
    const Decision decision = state.chiefs[id - 1].decision;
    const Member& leader = decision == Decision::kCopyLeads ? state.copy : state.primary;
    return decision == Decision::kNone || !leader.alive || leader.committed != configuration.steps;
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
    case EventKind::kWorkerDies:
      return false;
    case EventKind::kMemberAccepts:
      return is_newest(event.who) || (!HasBegun(state, static_cast<ChiefId>(event.who)) &&
                                      NewestAreRefused(configuration, state));
    case EventKind::kPlainAccepts:
    case EventKind::kChiefDecides:
    case EventKind::kChiefCommits:
    case EventKind::kMemberObeys:
      return is_newest(event.who);
    case EventKind::kChiefExcludesCopy:
      return is_newest(event.who) && !state.copy.alive;
    case EventKind::kChiefPromotesCopy:
      return is_newest(event.who) && !state.primary.alive;
    case EventKind::kTake:  // under a grant of the newest chief
      return follows_newest(state.primary);
    case EventKind::kCopyCloses:
      return follows_newest(state.copy);
    case EventKind::kToken:
      return (event.member == MemberName::kPrimary ? state.primary : state.copy).alive;
    default:
      return true;
  }
}

}  // namespace lockstep::model
