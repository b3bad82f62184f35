#include "tests/sim/replica_history.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace lockstep::sim {

std::optional<std::string> ReplicaHistory::Add(const AcceptedView& view) {
  for (const ReplicaView& replicas : view.replica_views.views()) {
    const auto [known, is_new] = views_.try_emplace({view.epoch, replicas.first}, replicas);
    if (!is_new && !(known->second == replicas)) {
      return absl::StrCat("step ", replicas.first.value(), " begins replica view ",
                          known->second.number, ", and view ", replicas.number, " as well");
    }
  }
  return std::nullopt;
}

const ReplicaView* ReplicaHistory::At(Epoch epoch, GlobalStep step) const {
  const auto after = views_.upper_bound({epoch, step});
  if (after == views_.begin()) return nullptr;
  const auto& [first, view] = *std::prev(after);
  return first.first == epoch ? &view : nullptr;
}

}  // namespace lockstep::sim
