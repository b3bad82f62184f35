// SimCopyTargets connects a simulated ps process to the copies of its shards: the real senders,
// over the network.
#pragma once

#include <memory>
#include <vector>

#include "ps/copy/copy_sender.h"
#include "tests/sim/address_book.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/network.h"
#include "tests/sim/planted_bug.h"

namespace lockstep::sim {

class SimCopyTargets {
 public:
  // `node` is that of the process. The objects pointed to outlive this.
  SimCopyTargets(const Node& node, PlantedBug planted, const AddressBook* book, Network* network,
                 EventQueue* events)
      : node_(node), planted_(planted), book_(book), network_(network), events_(events) {}
  ~SimCopyTargets() { Close(); }

  std::shared_ptr<ps::CopyTarget> Make(const ps::CopyTargetOptions& options);
  // Stops all sends and callbacks. Must not be called in a callback of a target.
  void Close();

 private:
  const Node node_;
  const PlantedBug planted_;
  const AddressBook* const book_;
  Network* const network_;
  EventQueue* const events_;
  std::vector<std::shared_ptr<ps::CopySender>> senders_;
};

}  // namespace lockstep::sim
