// Random groups of workers that reduce together.
#pragma once

#include <cstdint>

#include "tests/sim/sim_peers.h"

namespace lockstep::sim {

PeerOptions RandomPeers(uint64_t seed);
// The same, with an accident of one worker.
PeerOptions PeersWithAccident(uint64_t seed, Accident accident);

}  // namespace lockstep::sim
