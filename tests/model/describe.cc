#include "absl/strings/str_cat.h"
#include "tests/model/transitions.h"

namespace lockstep::model {
namespace {

// "{0,1}": the workers in a set.
std::string Text(GradientSet set) {
  std::string text = "{";
  for (int worker = 0; worker < kWorkers; ++worker) {
    if (set >> worker & 1) absl::StrAppend(&text, text.size() > 1 ? "," : "", worker);
  }
  return text + "}";
}

const char* NameOf(int member) { return member == 0 ? "home" : "host"; }

std::string Text(const Chief& chief) {
  const char* const serving = NameOf(chief.serving);
  switch (chief.decision) {
    case Decision::kNone:
      return "nothing";
    case Decision::kPair:
      return absl::StrCat(serving, " as primary, and its copy");
    case Decision::kAlone:
    case Decision::kMakeCopy:
    case Decision::kTransfer:
      return absl::StrCat(serving, " alone");
  }
  return "";
}

const char* Text(const Member& member) {
  if (member.leads()) return "it serves alone";
  if (member.serves) return "it serves, and waits for its copy";
  return member.awaits == Awaits::kNothing ? "it keeps a copy" : "it keeps a copy that lacks state";
}

std::string LastStep(const Member& member) {
  const int step = member.version - 1;
  return absl::StrCat("step ", step, " as the sum of ", Text(SetOfStep(member.history, step)));
}

}  // namespace

std::string Describe(const Configuration& configuration, const Transition& transition) {
  const Event& event = transition.event;
  const State& next = transition.next;
  const Member& member = next.members[event.member];
  const std::string name = NameOf(event.member);
  const std::string other = NameOf(1 - event.member);
  const auto chief = [&] {
    const int term = configuration.TermOf(static_cast<ChiefId>(event.who));
    return absl::StrCat("chief ", event.who, " (term ", term, ")");
  };
  switch (event.kind) {
    case EventKind::kMemberDies:
      return name + " dies";
    case EventKind::kWorkerDies:
      return absl::StrCat("worker ", event.who, " dies; its successor starts at step ",
                          next.workers[event.who].step, " of ", name);
    case EventKind::kMemberReturns:
      return name + " is started again, with nothing";
    case EventKind::kMemberAccepts:
      return absl::StrCat(name, " accepts ", chief(), ", answers: ", Text(member));
    case EventKind::kPlainAccepts:
      return "plain shard accepts " + chief();
    case EventKind::kChiefDecides:
      return absl::StrCat(chief(), " takes over with ", Text(next.chiefs[event.who - 1]));
    case EventKind::kChiefExcludesCopy:
      return absl::StrCat(chief(), " excludes the copy of ", name);
    case EventKind::kChiefPromotesCopy:
      return absl::StrCat(chief(), " promotes ", name);
    case EventKind::kChiefAttaches:
      return absl::StrCat(chief(), " makes ", name, " the new copy of ", other);
    case EventKind::kChiefPairs:
      return absl::StrCat(chief(), " counts ", name, " as the copy of ", other);
    case EventKind::kChiefCommits:
      return absl::StrCat(chief(), " commits at ", name, ": token ", member.committed);
    case EventKind::kMemberObeys:
      return absl::StrCat(name, " obeys ", chief(), ": ", Text(member));
    case EventKind::kTake:
      return absl::StrCat(name, " takes ", Text(member.delta), " of step ", member.version,
                          ", sends the sum to ", other);
    case EventKind::kDeltaArrives:
      return absl::StrCat(name, " receives the sum of ", Text(next.members[1 - event.member].delta),
                          " of step ", next.members[1 - event.member].version);
    case EventKind::kDeltaApplied:
      return absl::StrCat(name, " applies step ", member.version - 1, ", acknowledges");
    case EventKind::kStateBegins:
      return absl::StrCat(name, " begins to send its state to ", other);
    case EventKind::kStateCompletes:
      return absl::StrCat(name, " has sent the state of version ", member.version + 1, " to ",
                          other);
    case EventKind::kPublish:
    case EventKind::kCloses:
      return absl::StrCat(name, " publishes ", LastStep(member));
    case EventKind::kPush:
      return absl::StrCat("worker ", event.who, " pushes step ", next.workers[event.who].step,
                          " to ", name);
    case EventKind::kPushToPlain:
      return absl::StrCat("worker ", event.who, " pushes step ", next.workers[event.who].step,
                          " to the plain shard");
    case EventKind::kPlainCloses:
      return absl::StrCat("plain shard closes step ", next.plain.version - 1);
    case EventKind::kPull: {
      const Worker& worker = next.workers[event.who];
      const int version = worker.step + (worker.prefetched != 0);
      return absl::StrCat("worker ", event.who, " fetches version ", version, " from ", name);
    }
    case EventKind::kToken:
      return absl::StrCat("worker ", event.who, " receives token ", next.workers[event.who].step,
                          " of ", name);
  }
  return "";
}

}  // namespace lockstep::model
