// ServingServers knows the server of each shard of a job with copies, from the views that servers
// accepted. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tests/sim/history.h"

namespace lockstep::sim {

class ServingServers {
 public:
  explicit ServingServers(uint32_t num_shards) : shards_(num_shards) {}

  // Takes the views that were accepted since the last call.
  void Update(const History& history);
  // `server` has begun to serve anew, in the same epoch, a shard that was lost.
  void NoteServing(uint32_t shard, Incarnation server);
  // Another server serves in its place; `server` may not know it.
  bool IsReplaced(Incarnation server) const { return replaced_.contains(server); }
  // 0: no server has served it yet. One that is lost counts until another one serves.
  Incarnation Of(uint32_t shard) const { return shards_[shard].server; }

 private:
  struct Served {
    Incarnation server;
    Epoch epoch;
  };

  void Note(const AcceptedView& view);
  void Replace(Incarnation* server, Incarnation by);

  std::vector<Served> shards_;
  std::map<Incarnation, bool> is_copy_;  // by server
  std::set<Incarnation> replaced_;
  size_t views_ = 0;  // views that are known
};

}  // namespace lockstep::sim
