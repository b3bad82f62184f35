// Which buffers a pass over a model needs, and when.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/graph.h"
#include "worker/tower/memory_plan.h"
#include "worker/tower/schedule.h"

namespace lockstep::worker {

struct PassOptions {
  int64_t batch = 1;
  bool training = true;  // false: no memory for gradients; activations share theirs
};

// Op i of n runs forward at time i and backward at 2n - i, the loss at n.
struct PassBuffers {
  PassBuffers(const ModelGraph& graph, const Schedule& schedule, const PassOptions& options);

  static constexpr int kNone = -1;

  std::vector<BufferLife> lives;
  // Indices into lives, kNone where there is none.
  std::vector<int> value;                 // by ValueId
  std::vector<int> gradient;              // by ValueId
  std::vector<std::vector<int>> partial;  // by op and input: beside another gradient of the value

 private:
  void Extend(int buffer, int time);
};

}  // namespace lockstep::worker
