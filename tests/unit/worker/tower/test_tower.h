// Towers of the test's device (tests/support/test_device.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tests/support/test_device.h"
#include "worker/tower/tower.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {

// One tower, without a group.
class TestTower {
 public:
  // Its device has so many threads; REQUIREs that the tower can be made.
  TestTower(const ModelGraph& graph, const TowerOptions& options, int threads = 1);

  // Trains and brings the gradients to the host, from the last to the first; calls `ready` for each
  // layer. The loss.
  float Train(const Batch& batch, const VariableValues& variables,
              std::span<const MutableTensorView> gradients, uint64_t random_key,
              const TowerGroup::GradientReady& ready);
  Tower* operator->() { return tower_.get(); }

 private:
  const std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> copies_;
  std::unique_ptr<Event> copied_;
  std::unique_ptr<Tower> tower_;
};

// A group and its device, with so many threads for each tower.
struct TestGroup {
  TestGroup(const ModelGraph& graph, const TowerGroupOptions& options, int threads = 1);
  TowerGroup* operator->() { return group.get(); }

  std::shared_ptr<Device> device;
  std::unique_ptr<TowerGroup> group;
};

}  // namespace lockstep::worker
