// A state of the modelled job: a primary and its copy, two workers, and up to four chiefs. Pure
// data; transitions.h changes it. Messages in flight are not stored: they follow from the state of
// their sender. While it waits for the answer they may arrive at any moment, twice, or never.
#pragma once

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

// One process of the pair. Its messages may arrive after its death, so its state stays.
struct Member {
  uint8_t alive = 1;
  ChiefId accepted = 1;  // whose term it has accepted
  ChiefId view = 1;      // whose order it obeyed last
  uint8_t leads = 0;     // the primary: it is alone. The copy: it is the primary now
  uint8_t version = 0;
  History history = 0;
  GradientSet held = 0;   // gradients of step `version`, pushed and not yet taken
  GradientSet delta = 0;  // primary: taken and sent to the copy. Copy: received, not yet applied
  uint8_t lacks_last_version = 0;  // version - 1 is not readable
  uint8_t committed = 0;           // tokens up to this step have been answered
};

// What a member answered to a chief that asked for its term.
enum class Answer : uint8_t { kNone, kFollows, kLeads };  // in sync or copy; alone or primary

enum class Decision : uint8_t { kNone, kPair, kPrimaryAlone, kCopyLeads };

struct Chief {
  Decision decision = Decision::kNone;
  Answer primary = Answer::kNone;
  Answer copy = Answer::kNone;
  bool asked_anyone() const { return primary != Answer::kNone || copy != Answer::kNone; }
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
  Member primary;
  Member copy;
  uint8_t acknowledged = 0;  // the copy has told the primary that it has applied its delta
  std::array<Chief, kMaxChiefs> chiefs;
  std::array<Worker, kWorkers> workers;
  PlainShard plain;
  History settled = 0;  // of the committed steps; what workers train on

  int settled_steps() const {
    return primary.committed > copy.committed ? primary.committed : copy.committed;
  }
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
