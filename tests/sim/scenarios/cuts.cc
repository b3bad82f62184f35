#include "tests/sim/scenarios/cuts.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kMostClockChange = absl::Hours(30);

// Two processes that call one another. Of the chiefs it is the one that workers call, or any.
Link RandomPair(SimCluster* cluster, Random* random) {
  const Node ps{Role::kPs, static_cast<uint32_t>(random->Below(cluster->options().ps))};
  const Node worker{Role::kWorker,
                    static_cast<uint32_t>(random->Below(cluster->options().workers))};
  const Node chief = cluster->chief().commander();
  const uint32_t chiefs = cluster->chief().num_processes();
  const bool has_copies = cluster->options().copies;
  if (has_copies && random->Chance(0.4)) {
    return {ps, {Role::kPs, (ps.index + 1) % cluster->options().ps}};
  }
  switch (random->Below(chiefs > 1 ? 4 : 3)) {
    case 0:
      return {chief, ps};
    case 1:
      return {worker, ps};
    case 2:
      return {worker, chief};
    default:
      return {{Role::kChief, static_cast<uint32_t>(random->Below(chiefs))}, {Role::kPs, 0}};
  }
}

}  // namespace

void PlanCuts(const Cuts& cuts, const std::shared_ptr<Random>& random, SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t left = random->Between(1, 5); left > 0; --left) {
    when += random->Between(absl::ZeroDuration(), absl::Milliseconds(60));
    const absl::Duration length = random->Between(absl::ZeroDuration(), cuts.longest);
    cluster->events().After(when, [cluster, random, length] {
      const Link pair = RandomPair(cluster, random.get());
      cluster->network().Cut(random->Chance(0.5) ? pair : pair.Reversed(), length);
    });
    if (!cuts.overlap || random->Chance(0.5)) when += length + absl::Milliseconds(100);
  }
}

void PlanClockChanges(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  for (int64_t left = random->Between(0, 3); left > 0; --left) {
    const absl::Duration when = random->Between(absl::ZeroDuration(), absl::Milliseconds(100));
    const absl::Duration by = random->Between(-kMostClockChange, kMostClockChange);
    cluster->events().After(when, [cluster, by] { cluster->events().SetWallBy(by); });
  }
}

}  // namespace lockstep::sim
