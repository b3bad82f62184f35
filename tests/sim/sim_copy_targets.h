// SimCopyTargets connects a simulated ps process to the copies of its shards: the real senders,
// over the network.
#pragma once

#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "ps/copy/copy_sender.h"
#include "tests/sim/address_book.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/network.h"
#include "tests/sim/planted_bug.h"

namespace lockstep::sim {

class SimCopyTargets {
 public:
  // `node` and `clock` are those of the process. The objects pointed to outlive this.
  SimCopyTargets(const Node& node, PlantedBug planted, const AddressBook* book, Network* network,
                 const Clock* clock, EventQueue* events)
      : node_(node),
        planted_(planted),
        book_(book),
        network_(network),
        clock_(clock),
        events_(events) {}
  ~SimCopyTargets() { Close(); }

  std::shared_ptr<ps::CopyTarget> Make(const ps::CopyTargetOptions& options);
  // Stops all sends and callbacks. Must not be called in a callback of a target.
  void Close();

 private:
  const Node node_;
  const PlantedBug planted_;
  const AddressBook* const book_;
  Network* const network_;
  const Clock* const clock_;
  EventQueue* const events_;
  std::vector<std::shared_ptr<ps::CopySender>> senders_;
};

}  // namespace lockstep::sim
