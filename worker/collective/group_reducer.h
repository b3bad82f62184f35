// Reduces the gradients of this worker's towers with those of all towers of a group of workers: an
// interface. LocalGroupReducer does it for one worker, PeerGroupReducer (worker/peer) over
// processes. Both give the bits of RunBatchInMemory over all towers, ordered by their ranks.
//
// Each step:
//   reducer->Reduce(step, gradients, done);   // reads them until done
//   ... done(OK) ...
//   use reducer->tensor(tower, i)             // sum or mean, until the next Reduce
//
// Ownership: gradients belong to the caller and are only read, so that they can be reduced again
// after an error. The tensors belong to the reducer, one copy for each local tower; on one host
// peers read them in place. A caller that can compute gradients directly into tensor(tower, i)
// passes those views and saves the copy; they are then gone after an error.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/callback.h"
#include "common/tensor/tensor.h"
#include "worker/collective/batch_plan.h"
#include "worker/collective/packing_plan.h"
#include "worker/collective/schedule.h"

namespace lockstep::worker {

// What all members of a group make alike, from the same model and job.
struct GroupReduction {
  Topology topology;  // workers of the group in its order, towers of each
  std::vector<TensorSpec> tensors;
  BatchPlan plan;       // of `tensors` over `topology`: AllReduceBase::Plan or MakeBatchPlan
  bool average = true;  // false: the sum
  // Consecutive vectors that begin together, the next of them when these are done. 0: all.
  int merge_scope = 0;
};

// What this worker's towers have sent since the reducer was made.
struct GroupTraffic {
  Traffic within;  // to towers of the same worker: read where they are
  Traffic across;  // to towers of other workers

  friend bool operator==(const GroupTraffic&, const GroupTraffic&) = default;
};

// Thread-safe, except that one reduction runs at a time. Destruction cancels it and waits for its
// callback, so it must not happen in one.
class GroupReducer {
 public:
  virtual ~GroupReducer() = default;

  // Tensor `i` of local tower `tower`, of the shape and dtype of GroupReduction::tensors. Aligned
  // to its elements. Stays at its place; may be written while no reduction runs, but not
  // after an error: peers may still read it.
  virtual MutableTensorView tensor(int tower, int i) const = 0;

  // gradients[tower][i], each of the tensor's dtype and number of elements, of a gathered tensor of
  // those of the tower's share (CHECK), are read until `done`, which is called once, on any thread
  // or before the call returns, never under a lock. No reduction may run (CHECK). After OK,
  // tensor(tower, i) has the result, the same bits for all towers of all members. `step` travels
  // with the messages.
  //
  // Errors are final: every later Reduce ends with the same one, and the group needs a new reducer.
  // ABORTED: the group has a newer view, or a member reduces another step. UNAVAILABLE,
  // DEADLINE_EXCEEDED: a member, which is named, is gone or silent. INVALID_ARGUMENT: a member
  // reduces something else; both are named.
  virtual void Reduce(int64_t step, absl::Span<const std::vector<TensorView>> gradients,
                      StatusCallback done) = 0;
  // Ends the running reduction and all later ones with `reason`, which is an error.
  virtual void Cancel(absl::Status reason) = 0;

  // While no reduction runs.
  virtual GroupTraffic traffic() const = 0;
};

}  // namespace lockstep::worker
