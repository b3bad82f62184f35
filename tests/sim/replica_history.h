// The replica views of a job whose workers come and go, as chiefs have announced them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tests/sim/history.h"

namespace lockstep::sim {

class ReplicaHistory {
 public:
  // What is wrong with the replica views that a server has accepted; nothing when all is right. One
  // that begins a step does so for every shard, and for good.
  std::optional<std::string> Add(const AcceptedView& view);
  // The view of a step; null: it has none.
  const ReplicaView* At(Epoch epoch, GlobalStep step) const;

 private:
  std::map<std::pair<Epoch, GlobalStep>, ReplicaView> views_;  // by first step
};

}  // namespace lockstep::sim
