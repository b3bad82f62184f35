// Many random groups of workers over a network that loses, delays and reorders messages: nobody
// waits for ever, all have the bits of one process, and who dies or hangs is named in time.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_peers.h"

namespace lockstep::sim {
namespace {

constexpr uint64_t kSeeds = 2000;
constexpr uint64_t kFewerSeeds = 500;  // of what differs in little

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

PeerOptions WithAccident(uint64_t seed, Accident accident) {
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

std::string Simulate(const PeerOptions& options) { return SimPeers(options).Run(); }

// Most accidents come before the last step is over, and so cost a view.
void CheckAccidents(Accident accident, uint64_t seeds) {
  uint64_t views = 0;
  CHECK(AllAreRight(seeds, [&](uint64_t seed) {
    SimPeers peers(WithAccident(seed, accident));
    const std::string wrong = peers.Run();
    views += peers.views();
    return wrong;
  }));
  CHECK(views > seeds * 3 / 2);
}

TEST_CASE("random groups reduce to the bits of one process over a bad network") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight(kFewerSeeds, [](uint64_t seed) { return Simulate(RandomPeers(seed)); }));
}

TEST_CASE("a worker that dies is named in time, and the next view repeats the step") {
  CheckAccidents(Accident::kDeath, kSeeds);
}

TEST_CASE("a worker that hangs is named in time, and the next view repeats the step") {
  CheckAccidents(Accident::kHang, kFewerSeeds);
}

}  // namespace
}  // namespace lockstep::sim
