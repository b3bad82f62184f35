// Steps of a TowerGroup whose work runs in many orders, on devices that defer it.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/deferred_device.h"
#include "tests/unit/worker/tower/group_training.h"

namespace lockstep::worker {

// A group in a test, which all outlive.
struct DeferredGroup {
  TowerGroup* group;
  const ModelGraph* graph;
  int towers;
  test::DeferredDevice* work;  // runs the group's work
  TensorMaker make_gradient = OnHeap;
};

// The first of the seeds 1 to `seeds` whose order gives other bits than `wanted`, by variant; 0:
// all give these.
uint64_t FirstOtherOrder(const DeferredGroup& deferred, const std::vector<Gradients>& wanted,
                         uint64_t seeds);

// Leaves out each wait of a step in turn. The indices of those without which 250 orders give the
// bits that are wanted all the same: nothing needs them. Counts the waits in `waits`.
std::vector<int64_t> NeedlessWaits(const DeferredGroup& deferred,
                                   const std::vector<Gradients>& wanted, int64_t* waits);

}  // namespace lockstep::worker
