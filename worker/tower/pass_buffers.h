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
  // By variable; empty: all. Of a table, the rows that the values of a call hold at most.
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
  std::vector<std::vector<int>> partial;  // by op and input: beside another gradient of the value
  // By loss: beside the gradient that another one has of the value, and beside the first's result.
  std::vector<int> loss_partial;
  std::vector<int> loss_result;
  // By op and variable, of those that are trained and that an earlier op uses too: beside the
  // gradient that this one computes.
  std::vector<std::vector<int>> shared;
  std::vector<int> first_user;  // by variable: an op, or kNone

 private:
  int Add(size_t elements, DType type, int first, int last);
  void Extend(int buffer, int time);
  void AddLosses(const ModelGraph& graph, const TowerSchedule& schedule, int64_t batch);
  void AddShared(const ModelGraph& graph, const TowerSchedule& schedule);
};

}  // namespace lockstep::worker
