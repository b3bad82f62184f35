// PassBuffers lists the buffers of a pass over a model, and the times at which each is in use.
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
  // By variable: the most rows of a table that the values of a call hold. Empty: all.
  std::vector<int64_t> most_rows = {};
};

// Op i of n runs forward at time i and backward at 2n - i, the losses at n.
struct PassBuffers {
  PassBuffers(const ModelGraph& graph, const TowerSchedule& schedule, const PassOptions& options);

  static constexpr int kNone = -1;

  std::vector<BufferLife> lives;
  // Indices into lives, kNone where there is none.
  std::vector<int> value;                 // by ValueId
  std::vector<int> gradient;              // by ValueId
  std::vector<std::vector<int>> partial;  // by op and input: a further gradient of the value
  // By loss: a gradient of the value besides that of another loss; a result besides the first's.
  std::vector<int> loss_partial;
  std::vector<int> loss_result;
  // By op and variable: this op's gradient of a variable that is not frozen and that an earlier op
  // uses too.
  std::vector<std::vector<int>> shared;
  std::vector<int> first_user;  // by variable: an op, or kNone

 private:
  int Add(size_t elements, DType type, int first, int last);
  void Extend(int buffer, int time);
  void AddLosses(const ModelGraph& graph, const TowerSchedule& schedule, int64_t batch);
  void AddShared(const ModelGraph& graph, const TowerSchedule& schedule);
};

}  // namespace lockstep::worker
