#include "tests/model/laws.h"

#include <algorithm>

namespace lockstep::model {

std::string Describe(Law law) {
  switch (law) {
    case Law::kNone:
      return "no law is broken";
    case Law::kOneValuePerVersion:
      return "broken: workers see one value of each version";
    case Law::kPublishedOnce:
      return "broken: two members never publish different sums as one version";
    case Law::kOneLeader:
      return "broken: two members never serve alone";
    case Law::kSummedOnce:
      return "broken: no gradient is summed twice";
    case Law::kCommittedStaysTrue:
      return "broken: the leader has every committed step";
    case Law::kJobCanFinish:
      return "broken: the job can finish once nothing fails any more";
  }
  return "";
}

Law CommitAt(int version, Member* leader, State* state) {
  const int settled = state->settled_steps();
  const int common = std::min(version, settled);
  const bool agrees = Prefix(leader->history, common) == Prefix(state->settled, common);
  leader->committed = static_cast<uint8_t>(version);
  if (version > settled) state->settled = Prefix(leader->history, version);
  return agrees ? Law::kNone : Law::kCommittedStaysTrue;
}

Law LawOfLeader(const State& state, const Member& leader, const Member& other) {
  if (other.leads()) return Law::kOneLeader;
  const int settled = state.settled_steps();
  const bool has_all =
      leader.version >= settled && Prefix(leader.history, settled) == state.settled;
  return has_all ? Law::kNone : Law::kCommittedStaysTrue;
}

Law LawOfValues(const State& state, const Member& member, int step) {
  const bool agrees = Prefix(member.history, step) == Prefix(state.settled, step);
  return agrees ? Law::kNone : Law::kOneValuePerVersion;
}

}  // namespace lockstep::model
