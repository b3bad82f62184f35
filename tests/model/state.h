// A state of the modelled job: a shard at two places, of which one serves and the other one keeps
// the copy, two workers, and up to four chiefs. Pure data; transitions.h changes it. Messages in
// flight are not stored: they follow from the state of their sender. While it waits for the answer
// they may arrive at any moment, twice, or never.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockstep::model {

constexpr int kWorkers = 2;
constexpr int kMaxChiefs = 4;
constexpr int kMaxSteps = 3;

// Workers whose gradients were summed in one step: bit w is worker w. Empty: no sum yet.
using GradientSet = uint8_t;
// The sets of steps 0, 1, ...: two bits each.
using History = uint8_t;

constexpr GradientSet SetOfStep(History history, int step) { return history >> (2 * step) & 3; }
// The history that made `version`.
constexpr History Prefix(History history, int version) {
  return history & ((1 << (2 * version)) - 1);
}
constexpr History Extend(History history, int step, GradientSet set) {
  return history | set << (2 * step);
}
constexpr int Size(GradientSet set) { return (set & 1) + (set >> 1); }

// A chief by its index; 0 is nobody. Its term is in the configuration.
using ChiefId = uint8_t;

// A process dies once. The one that is started in its place has nothing.
enum class Life : uint8_t { kFirst, kDead, kReturned };

// What a copy lacks. Of one that serves: kState, its new copy has not begun to get state.
enum class Awaits : uint8_t {
  kNothing,
  kState,        // nothing has come, or it is a process that was started again
  kRest,         // it takes the sums, on state that is not all there
  kOneStepMore,  // the version before its own is not there
};

// One of the two places. Its messages may arrive after its death, so its state stays.
struct Member {
  Life life = Life::kFirst;
  ChiefId accepted = 1;  // whose term it has accepted
  ChiefId view = 1;      // whose order it obeyed last
  uint8_t order = 0;     // the number of that order
  uint8_t serves = 0;    // it is the primary, as far as it knows
  uint8_t alone = 0;     // it waits for no copy
  Awaits awaits = Awaits::kNothing;
  uint8_t version = 0;
  History history = 0;
  GradientSet held = 0;      // gradients of step `version`, pushed and not yet taken
  GradientSet delta = 0;     // primary: taken and sent to the copy. Copy: received, not yet applied
  uint8_t acknowledged = 0;  // its copy has told it that it has applied its delta
  uint8_t lacks_last_version = 0;  // version - 1 is not readable
  uint8_t committed = 0;           // tokens up to this step have been answered

  bool alive() const { return life != Life::kDead; }
  bool leads() const { return serves && alone; }
  // Started again, and nobody has spoken to it.
  bool is_empty() const { return alive() && accepted == 0 && awaits == Awaits::kState; }
  bool has_variables() const { return alive() && !is_empty(); }
  // Its delta is a sum of its own, not one that it received as a copy and counts as held.
  bool has_taken() const { return delta != 0 && (held & delta) == 0; }
};

// What a member answered to a chief that asked for its term.
enum class Answer : uint8_t {
  kNone,
  kFollows,  // in sync: it waits for a copy, or is one that lacks nothing
  kLeads,    // it serves alone
  kAwaits,   // a copy that lacks state
};

// Of a chief, about the pair: who serves is Chief::serving.
enum class Decision : uint8_t { kNone, kPair, kAlone, kMakeCopy, kTransfer };

struct Chief {
  Decision decision = Decision::kNone;
  uint8_t serving = 0;  // a member
  uint8_t order = 0;    // of its last decision
  std::array<Answer, 2> answers{Answer::kNone, Answer::kNone};
  bool asked_anyone() const { return answers[0] != Answer::kNone || answers[1] != Answer::kNone; }
  bool took_over_pair() const {
    return answers[0] == Answer::kFollows && answers[1] == Answer::kFollows;
  }
};

enum class Phase : uint8_t { kWaitsForValues, kHasGradient, kDroppedGradient };

struct Worker {
  uint8_t step = 0;  // its token
  Phase phase = Phase::kWaitsForValues;
  GradientSet prefetched = 0;  // fetched version step + 1: the set that made it
};

// A shard without a copy. Commits wait for it, too.
struct PlainShard {
  ChiefId accepted = 1;
  uint8_t version = 0;
  GradientSet held = 0;
};

struct State {
  std::array<Member, 2> members{Member{.serves = 1}, Member{}};  // home and host
  std::array<Chief, kMaxChiefs> chiefs;
  std::array<Worker, kWorkers> workers;
  PlainShard plain;
  History settled = 0;  // of the committed steps; what workers train on

  int settled_steps() const { return std::max(members[0].committed, members[1].committed); }
};

// 128 bits that tell states apart. Workers are alike: states that differ in their order are one.
struct PackedState {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const PackedState&) const = default;
};

PackedState Pack(const State& state);
State Unpack(const PackedState& packed);

}  // namespace lockstep::model
