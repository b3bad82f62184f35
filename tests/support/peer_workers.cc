#include "tests/support/peer_workers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::test {

PeerWorkers::PeerWorkers(int workers) {
  for (int i = 0; i < workers; ++i) {
    auto worker = std::make_unique<Worker>();
    auto server = Server::Start({.address = "127.0.0.1:0",
                                 .owner = absl::StrCat("worker ", i),
                                 .services = {&worker->service}});
    LOCKSTEP_CHECK(server.ok());
    worker->server = *std::move(server);
    worker->address = absl::StrCat("127.0.0.1:", worker->server->port());
    worker->timer = std::make_unique<rpc::AlarmTimer>(worker->server->queue());
    workers_.push_back(std::move(worker));
  }
}

std::string PeerWorkers::address(int worker) const { return workers_[worker]->address; }

void PeerWorkers::Stop(int worker) {
  workers_[worker]->timer.reset();
  workers_[worker]->server.reset();
}

worker::Group PeerWorkers::GroupOf(int members, uint64_t view, int position) const {
  worker::Group group{.job = 7, .view = {1, 1, view}, .position = position};
  for (int i = 0; i < members; ++i) {
    group.members.push_back({static_cast<uint32_t>(i), 100 + static_cast<uint64_t>(i), address(i)});
  }
  return group;
}

worker::PeerGroupReducerOptions PeerWorkers::OptionsFor(const worker::Group& group,
                                                        worker::GroupReduction reduction) {
  Worker& own = *workers_[group.position];
  return {.group = group,
          .reduction = std::move(reduction),
          .queue = own.server->queue(),
          .timer = own.timer.get()};
}

}  // namespace lockstep::test
