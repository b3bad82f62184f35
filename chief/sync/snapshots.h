// Which kept versions are still in use, and by how many; what nobody uses is released at every
// shard. Lives on the executor's thread.
#pragma once

#include <map>
#include <vector>

#include "chief/loop/executor.h"
#include "common/base/ids.h"
#include "common/client/ps_client.h"

namespace lockstep::chief {

class Snapshots {
 public:
  // `shards` and `executor` outlive the calls in flight.
  Snapshots(Command command, std::vector<PsControl*> shards, Executor* executor);

  // The version exists and has this many users; with none it is released at once.
  void Hold(GlobalStep version, int users);
  // One of them is through with it. A release that fails is logged: it costs memory, nothing else.
  void Release(GlobalStep version);

 private:
  void ReleaseEverywhere(GlobalStep version);

  const Command command_;
  const std::vector<PsControl*> shards_;
  Executor* const executor_;
  std::map<GlobalStep, int> users_;
};

}  // namespace lockstep::chief
