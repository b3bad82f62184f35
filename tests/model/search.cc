#include "tests/model/search.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/model/progress.h"
#include "tests/model/state_table.h"

namespace lockstep::model {
namespace {

void AppendAll(const Configuration& configuration, const State& state, Transitions* out) {
  out->clear();
  // The job goes back to its checkpoint.
  if (!state.members[0].has_variables() && !state.members[1].has_variables()) return;
  AppendChiefs(configuration, state, out);
  AppendPair(configuration, state, out);
  AppendPlainShard(configuration, state, out);
  AppendWorkers(configuration, state, out);
  AppendDeaths(configuration, state, out);
}

State InitialState() {
  State state;
  state.chiefs[0] = {.decision = Decision::kPair, .answers = {Answer::kFollows, Answer::kFollows}};
  return state;
}

class BreadthFirstSearch {
 public:
  BreadthFirstSearch(const Configuration& configuration, std::optional<Law> only)
      : configuration_(configuration), only_(only) {
    states_.Insert(Pack(InitialState()));
    parents_.push_back(0);
  }

  SearchResult Run() {
    Transitions transitions;
    for (uint32_t at = 0; at < states_.size(); ++at) {
      AppendAll(configuration_, Unpack(states_[at]), &transitions);
      for (const Transition& transition : transitions) {
        if (IsWanted(transition.broken)) return Broken(transition.broken, at);
        if (states_.Insert(Pack(transition.next)).is_new) parents_.push_back(at);
      }
    }
    const std::optional<uint32_t> stuck =
        IsWanted(Law::kJobCanFinish) ? FindStuckState() : std::nullopt;
    if (stuck.has_value()) return Broken(Law::kJobCanFinish, *stuck);
    return {.states = states_.size()};
  }

 private:
  bool IsWanted(Law broken) const {
    return broken != Law::kNone && broken == only_.value_or(broken);
  }

  // Returns the first state from which no healed run ends well.
  std::optional<uint32_t> FindStuckState() {
    std::vector<bool> ends_well(states_.size());
    Transitions transitions;
    for (bool changed = true; changed;) {
      changed = false;
      // Later states mostly follow from earlier ones, so few passes suffice.
      for (uint32_t at = static_cast<uint32_t>(states_.size()); at-- > 0;) {
        if (ends_well[at] || !EndsWell(at, ends_well, &transitions)) continue;
        ends_well[at] = true;
        changed = true;
      }
    }
    const auto stuck = std::find(ends_well.begin(), ends_well.end(), false);
    if (stuck == ends_well.end()) return std::nullopt;
    return static_cast<uint32_t>(stuck - ends_well.begin());
  }

  bool EndsWell(uint32_t at, const std::vector<bool>& ends_well, Transitions* transitions) {
    const State state = Unpack(states_[at]);
    if (IsFinished(configuration_, state) || MustGoBack(configuration_, state)) return true;
    AppendAll(configuration_, state, transitions);
    return std::any_of(transitions->begin(), transitions->end(), [&](const Transition& t) {
      return HappensWhenHealed(configuration_, state, t.event) &&
             ends_well[*states_.Find(Pack(t.next))];
    });
  }

  // `law` breaks in state `at` or by the event after it.
  SearchResult Broken(Law law, uint32_t at) const {
    return {states_.size(), law, DescribePath(law, at) + Describe(law) + "\n"};
  }

  // Describes the events from the initial state until `law` breaks. A packed state does not tell
  // the two workers apart, so this repeats the path with unpacked states.
  std::string DescribePath(Law law, uint32_t end) const {
    std::vector<uint32_t> path;
    for (uint32_t at = end; at != 0; at = parents_[at]) path.push_back(at);
    std::string text;
    State state = InitialState();
    Transitions transitions;
    const auto append_first = [&](auto&& is_taken) {
      AppendAll(configuration_, state, &transitions);
      const auto taken = std::find_if(transitions.begin(), transitions.end(), is_taken);
      absl::StrAppend(&text, Describe(configuration_, *taken), "\n");
      state = taken->next;
    };
    for (auto at = path.rbegin(); at != path.rend(); ++at) {
      append_first([&](const Transition& t) { return Pack(t.next) == states_[*at]; });
    }
    if (law != Law::kJobCanFinish)
      append_first([&](const Transition& t) { return t.broken == law; });
    return text;
  }

  const Configuration& configuration_;
  const std::optional<Law> only_;
  StateTable states_;
  std::vector<uint32_t> parents_;
};

}  // namespace

SearchResult Search(const Configuration& configuration) {
  return BreadthFirstSearch(configuration, std::nullopt).Run();
}

SearchResult SearchFor(Law law, const Configuration& configuration) {
  return BreadthFirstSearch(configuration, law).Run();
}

}  // namespace lockstep::model
