// The states found so far, numbered in the order of discovery: 16 bytes each, and 4 to 16 of index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/model/state.h"

namespace lockstep::model {

class StateTable {
 public:
  struct Inserted {
    uint32_t number;
    bool is_new;
  };

  StateTable() : slots_(kFirstSlots, kEmpty) {}

  size_t size() const { return states_.size(); }
  const PackedState& operator[](uint32_t number) const { return states_[number]; }

  Inserted Insert(const PackedState& state) {
    if (states_.size() * 4 >= slots_.size() * 3) Grow();
    const size_t slot = SlotOf(state);
    if (slots_[slot] != kEmpty) return {slots_[slot], false};
    slots_[slot] = static_cast<uint32_t>(states_.size());
    states_.push_back(state);
    return {slots_[slot], true};
  }

  std::optional<uint32_t> Find(const PackedState& state) const {
    const uint32_t number = slots_[SlotOf(state)];
    if (number == kEmpty) return std::nullopt;
    return number;
  }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  static constexpr size_t kFirstSlots = size_t{1} << 16;

  // Of the state, or the empty one where it belongs. Linear probing.
  size_t SlotOf(const PackedState& state) const {
    uint64_t hash = (state.low ^ (state.high * 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
    hash *= 0xc4ceb9fe1a85ec53;
    const size_t mask = slots_.size() - 1;
    size_t slot = (hash >> 20) & mask;
    while (slots_[slot] != kEmpty && !(states_[slots_[slot]] == state)) slot = (slot + 1) & mask;
    return slot;
  }

  void Grow() {
    slots_.assign(slots_.size() * 2, kEmpty);
    for (uint32_t number = 0; number < states_.size(); ++number) {
      slots_[SlotOf(states_[number])] = number;
    }
  }

  std::vector<PackedState> states_;
  std::vector<uint32_t> slots_;
};

}  // namespace lockstep::model
