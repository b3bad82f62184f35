// Sends one worker's gradients to one ps: cuts large tensors into chunks, joins small ones, keeps a
// window of messages in flight, repeats what was lost. One gradient at a time.
//
// Start, then Add each variable as its gradient becomes final (any order, any thread) and Flush
// what became so together, then the callback tells the verdicts. Tensors must stay unchanged from
// Add until the callback, and those in a GradientMemory until the next token where each replica has
// one. Between gradients nothing is allocated anew beyond messages.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/client/ps_client.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/tensor.h"
#include "proto/ps.pb.h"

namespace lockstep {

struct PushSummary {
  uint32_t accepted = 0;  // variables
  uint32_t stale = 0;
  bool done = false;  // asynchronous: the shard has applied its last step
};

struct PusherOptions {
  WorkerIdentity identity;
  size_t chunk_bytes = 512 * 1024;
  size_t bucket_bytes = 64 * 1024;  // tensors up to this size share messages
  // Of rows whose values the ps sees where they are: of one message at most, which has room for the
  // request of the next values, too (common/rpc/limits.h).
  size_t index_bytes = 8 * 1024 * 1024;
  int window = 4;  // messages in flight
  // How long an unreachable ps is tried before the gradient fails with UNAVAILABLE.
  absl::Duration patience = absl::Seconds(120);
  // As which the gradients of trained dense float32 variables travel: float32, bfloat16 or float16,
  // rounded to nearest. To a ps with which memory is exchanged (PsData::SharesMemory) always as
  // they are.
  DType wire_type = DType::kFloat32;
  // A stamp below the shard's step is nothing unusual: only a shard that is done drops what comes.
  bool asynchronous = false;
};

class GradientPusher {
 public:
  // `ps` outlives the pusher.
  GradientPusher(PsData* ps, const PusherOptions& options);
  ~GradientPusher();

  // Begins gradient `push_seq` of `num_variables` variables; `done` comes after the last verdict,
  // or with the first error that cannot be repaired by repeating. Not before the previous `done`.
  // With no variables `done` is called at once.
  void Start(PushSeq push_seq, GlobalStep local_step, int num_variables, Done<PushSummary> done);
  void Add(VariableId variable, TensorView gradient);
  // Of a variable that is not trained, but averaged: always as it is.
  void AddStatistic(VariableId variable, TensorView value);
  // The gradient of a sparse variable of shape `variable_shape`: slices of some of its rows. The
  // indices must stay unchanged too. Sorted and merged (indexed_slices.h) it is the smallest, and
  // counts the same whatever else arrives; other orders are merged as TensorFlow merges them.
  void AddRows(VariableId variable, const Shape& variable_shape, const IndexedSlicesView& slices);
  // Sends what was added, as far as the window lets it. The last variable is sent without.
  void Flush();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
