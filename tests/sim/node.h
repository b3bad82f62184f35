// The ends of a simulated call.
#pragma once

#include <compare>
#include <cstdint>

namespace lockstep::sim {

enum class Role : uint8_t { kNone, kChief, kWorker, kPs };

// A process, or the processes that follow one another as the same task. Of chiefs, the number
// counts processes.
struct Node {
  Role role = Role::kNone;
  uint32_t index = 0;

  friend auto operator<=>(const Node&, const Node&) = default;
};

// One direction.
struct Link {
  Node from;
  Node to;

  Link Reversed() const { return {to, from}; }
  friend auto operator<=>(const Link&, const Link&) = default;
};

}  // namespace lockstep::sim
