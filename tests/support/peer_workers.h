// Worker processes in one process, as far as their peers see them: each has a server on loopback
// with a peer service, and a timer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/rpc/alarm_timer.h"
#include "common/rpc/server.h"
#include "worker/peer/peer_group_reducer.h"
#include "worker/peer/peer_service.h"

namespace lockstep::test {

class PeerWorkers {
 public:
  explicit PeerWorkers(int workers);

  int size() const { return static_cast<int>(workers_.size()); }
  std::string address(int worker) const;
  worker::PeerService* service(int worker) { return &workers_[worker]->service; }
  Timer* timer(int worker) { return workers_[worker]->timer.get(); }
  // The process dies: nothing listens there any more. Its reducer must be gone.
  void Stop(int worker);

  // The first `members` workers in view `view`, as worker `position` sees it.
  worker::Group GroupOf(int members, uint64_t view, int position) const;
  // Of the worker at `position`, with its server's queue and timer.
  worker::PeerGroupReducerOptions OptionsFor(const worker::Group& group,
                                             worker::GroupReduction reduction);

 private:
  struct Worker {
    worker::PeerService service;
    std::unique_ptr<Server> server;
    std::string address;
    std::unique_ptr<rpc::AlarmTimer> timer;
  };

  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace lockstep::test
