#include "tests/model/state.h"

#include <utility>

namespace lockstep::model {
namespace {

// Visits every field with the number of bits that it needs.
template <typename M, typename Visitor>
void VisitMember(M& m, Visitor&& visit) {
  visit(m.life, 2);
  visit(m.accepted, 3);
  visit(m.view, 3);
  visit(m.order, 2);
  visit(m.serves, 1);
  visit(m.alone, 1);
  visit(m.awaits, 2);
  visit(m.version, 2);
  visit(m.history, 2 * kMaxSteps);
  visit(m.held, kWorkers);
  visit(m.delta, kWorkers);
  visit(m.acknowledged, 1);
  visit(m.lacks_last_version, 1);
  visit(m.committed, 2);
}

template <typename S, typename Visitor>
void VisitFields(S& s, Visitor&& visit) {
  for (auto& member : s.members) VisitMember(member, visit);
  for (auto& chief : s.chiefs) {
    visit(chief.decision, 3);
    visit(chief.serving, 1);
    visit(chief.order, 2);
    for (auto& answer : chief.answers) visit(answer, 2);
  }
  for (auto& worker : s.workers) {
    visit(worker.step, 2);
    visit(worker.phase, 2);
    visit(worker.prefetched, kWorkers);
  }
  visit(s.plain.accepted, 3);
  visit(s.plain.version, 2);
  visit(s.plain.held, kWorkers);
  visit(s.settled, 2 * kMaxSteps);
}

PackedState PackAsIs(const State& state) {
  PackedState packed;
  int used = 0;
  VisitFields(state, [&](const auto& field, int bits) {
    uint64_t& word = used + bits <= 64 ? packed.low : packed.high;
    if (used < 64 && used + bits > 64) used = 64;
    word |= static_cast<uint64_t>(field) << (used % 64);
    used += bits;
  });
  return packed;
}

constexpr uint8_t SwapPairsOfBits(uint8_t bits) {
  return static_cast<uint8_t>((bits & 0x55) << 1 | (bits & 0xaa) >> 1);
}

State SwapWorkers(State state) {
  std::swap(state.workers[0], state.workers[1]);
  for (Worker& worker : state.workers) worker.prefetched = SwapPairsOfBits(worker.prefetched);
  for (Member& member : state.members) {
    member.history = SwapPairsOfBits(member.history);
    member.held = SwapPairsOfBits(member.held);
    member.delta = SwapPairsOfBits(member.delta);
  }
  state.plain.held = SwapPairsOfBits(state.plain.held);
  state.settled = SwapPairsOfBits(state.settled);
  return state;
}

}  // namespace

PackedState Pack(const State& state) {
  const PackedState as_is = PackAsIs(state);
  const PackedState swapped = PackAsIs(SwapWorkers(state));
  const bool first = std::pair(as_is.low, as_is.high) <= std::pair(swapped.low, swapped.high);
  return first ? as_is : swapped;
}

State Unpack(const PackedState& packed) {
  State state;
  int used = 0;
  VisitFields(state, [&]<typename Field>(Field& field, int bits) {
    if (used < 64 && used + bits > 64) used = 64;
    const uint64_t word = used < 64 ? packed.low : packed.high;
    field = static_cast<Field>(word >> (used % 64) & ((uint64_t{1} << bits) - 1));
    used += bits;
  });
  return state;
}

}  // namespace lockstep::model
