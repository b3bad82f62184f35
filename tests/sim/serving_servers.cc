#include "tests/sim/serving_servers.h"

#include <utility>

namespace lockstep::sim {

void ServingServers::Update(const History& history) {
  for (; views_ < history.views.size(); ++views_) Note(history.views[views_]);
}

void ServingServers::NoteServing(uint32_t shard, Incarnation server) {
  if (Of(shard) != Incarnation()) Replace(&shards_[shard].server, server);
}

// Another server serves the shard where an epoch begins, and where a copy was promoted.
void ServingServers::Note(const AcceptedView& view) {
  const bool was_copy = std::exchange(is_copy_[view.ps.incarnation], view.is_copy);
  Served& shard = shards_[view.ps.shard];
  if (view.is_copy || view.epoch < shard.epoch) return;
  if (!was_copy && view.epoch == shard.epoch) return;
  Replace(&shard.server, view.ps.incarnation);
  shard.epoch = view.epoch;
}

void ServingServers::Replace(Incarnation* server, Incarnation by) {
  replaced_.insert(*server);
  replaced_.erase(by);
  *server = by;
}

}  // namespace lockstep::sim
