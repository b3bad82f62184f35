#include "tests/sim/scenarios/collectives.h"

#include <algorithm>
#include <iterator>

#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {

PeerOptions RandomPeers(uint64_t seed) {
  Random random(seed ^ 0x5eed);
  PeerOptions options;
  options.seed = seed;
  options.workers = random.Between(2, 5);
  options.towers = random.Between(1, 3);
  constexpr const char* kSpecs[] = {"xring",       "rechd",         "pscpu",      "pscpu#2",
                                    "pscpu/pscpu", "pscpu/pscpu#2", "collective", "pscpu:64:xring"};
  options.spec = AllReduceSpec::Parse(kSpecs[random.Below(std::size(kSpecs))]).value();
  for (int i = random.Between(1, 4); i > 0; --i) options.lengths.push_back(random.Between(0, 90));
  options.message_bytes = static_cast<size_t>(random.Between(8, 400));
  options.average = random.Chance(0.5);
  options.by_reference = random.Chance(0.5);
  options.steps = random.Between(1, 4);
  if (random.Chance(0.4)) options.network.loss = 0.05;
  if (random.Chance(0.4)) options.network.most_delay = absl::Milliseconds(50);
  if (random.Chance(0.3)) options.most_compute = absl::Milliseconds(300);
  return options;
}

PeerOptions PeersWithAccident(uint64_t seed, Accident accident) {
  PeerOptions options = RandomPeers(seed);
  Random random(seed ^ 0xacc1d);
  options.accident = accident;
  options.accident_at = random.Between(absl::ZeroDuration(), absl::Milliseconds(100));
  // Of a group of one there is no ring.
  options.has_successor = options.workers == 2 || random.Chance(0.5);
  // The group that is left has no fewer gather devices than the specs name.
  if (!options.has_successor) options.workers = std::max(options.workers, 3);
  return options;
}

std::string SimulateCollectives(uint64_t seed, SimRun* run) {
  return SimPeers(RandomPeers(seed), run).Run();
}

std::string SimulateCollectiveDeath(uint64_t seed, SimRun* run) {
  return SimPeers(PeersWithAccident(seed, Accident::kDeath), run).Run();
}

std::string SimulateCollectiveHang(uint64_t seed, SimRun* run) {
  return SimPeers(PeersWithAccident(seed, Accident::kHang), run).Run();
}

}  // namespace lockstep::sim
