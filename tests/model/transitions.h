// Lists the events that may happen next in a state. One function per role appends every event of
// that role, with the state that follows and the law that breaks, if any. Pure.
#pragma once

#include <string>
#include <vector>

#include "tests/model/laws.h"
#include "tests/model/rules.h"
#include "tests/model/state.h"

namespace lockstep::model {

enum class EventKind : uint8_t {
  kMemberDies,
  kMemberReturns,
  kWorkerDies,
  kMemberAccepts,
  kPlainAccepts,
  kChiefDecides,
  kChiefExcludesCopy,
  kChiefPromotesCopy,
  kChiefAttaches,
  kChiefPairs,
  kChiefCommits,
  kMemberObeys,
  kTake,
  kDeltaArrives,
  kDeltaApplied,
  kStateBegins,
  kStateCompletes,
  kPublish,
  kCloses,
  kPush,
  kPushToPlain,
  kPlainCloses,
  kPull,
  kToken,
};

struct Event {
  EventKind kind;
  int member = 0;
  int who = 0;  // worker or chief
  bool operator==(const Event&) const = default;
};

struct Transition {
  Event event;
  State next;
  Law broken = Law::kNone;
};

using Transitions = std::vector<Transition>;

void AppendChiefs(const Configuration& configuration, const State& state, Transitions* out);
void AppendPair(const Configuration& configuration, const State& state, Transitions* out);
void AppendWorkers(const Configuration& configuration, const State& state, Transitions* out);
void AppendPlainShard(const Configuration& configuration, const State& state, Transitions* out);
// Each member may die once, at any moment, and may be started again.
void AppendDeaths(const Configuration& configuration, const State& state, Transitions* out);

std::string Describe(const Configuration& configuration, const Transition& transition);

}  // namespace lockstep::model
