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

const char* Text(Decision decision) {
  switch (decision) {
    case Decision::kNone:
      return "nothing";
    case Decision::kPair:
      return "primary and copy";
    case Decision::kPrimaryAlone:
      return "the primary alone";
    case Decision::kCopyLeads:
      return "the copy as primary";
  }
  return "";
}

std::string LastStep(const Member& member) {
  const int step = member.version - 1;
  return absl::StrCat("step ", step, " as the sum of ", Text(SetOfStep(member.history, step)));
}

}  // namespace

std::string Describe(const Configuration& configuration, const Transition& transition) {
  const Event& event = transition.event;
  const State& next = transition.next;
  const bool is_primary = event.member == MemberName::kPrimary;
  const Member& member = is_primary ? next.primary : next.copy;
  const std::string name = is_primary ? "primary" : "copy";
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
    case EventKind::kMemberAccepts: {
      const std::string follows = is_primary ? "in sync" : "copy";
      const std::string leads = is_primary ? "alone" : "primary";
      return absl::StrCat(name, " accepts ", chief(),
                          ", answers: ", member.leads ? leads : follows);
    }
    case EventKind::kPlainAccepts:
      return "plain shard accepts " + chief();
    case EventKind::kChiefDecides:
      return absl::StrCat(chief(), " takes over with ", Text(next.chiefs[event.who - 1].decision));
    case EventKind::kChiefExcludesCopy:
      return chief() + " excludes the copy";
    case EventKind::kChiefPromotesCopy:
      return chief() + " promotes the copy";
    case EventKind::kChiefCommits:
      return absl::StrCat(chief(), " commits at ", name, ": token ", member.committed);
    case EventKind::kMemberObeys:
      return absl::StrCat(name, " obeys ", chief(), ": it ", member.leads ? "leads" : "follows");
    case EventKind::kTake:
      return absl::StrCat("primary takes ", Text(next.primary.delta), " of step ",
                          next.primary.version, ", sends the sum to the copy");
    case EventKind::kDeltaArrives:
      return absl::StrCat("copy receives the sum of ", Text(next.primary.delta), " of step ",
                          next.primary.version);
    case EventKind::kDeltaApplied:
      return absl::StrCat("copy applies ", LastStep(next.copy), ", acknowledges");
    case EventKind::kPublish:
      return "primary publishes " + LastStep(next.primary);
    case EventKind::kCopyCloses:
      return "copy, as primary, publishes " + LastStep(next.copy);
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
