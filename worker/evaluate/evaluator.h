// Evaluation beside training: takes the ranges of the test set that the chief leases to this
// worker, runs the model over them with the variables of the named version, and keeps the counts
// until the chief has them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/timer.h"
#include "common/client/shard_session.h"
#include "common/model/graph.h"
#include "common/transport/tensor_transport.h"
#include "proto/chief.pb.h"
#include "worker/cache/variable_cache.h"
#include "worker/cache/variable_layout.h"
#include "worker/data/pipeline.h"
#include "worker/tower/batch_rows.h"
#include "worker/tower/tower.h"

namespace lockstep::worker {

struct EvaluatorOptions {
  WorkerIdentity identity;
  int64_t batch = 256;       // examples per forward pass
  Device* device = nullptr;  // outlives the evaluator, as its ops do
  const OpTable* ops = nullptr;
  bool averages = false;  // in place of the values of variables that have one
  absl::Duration patience = absl::Seconds(120);  // with an unreachable ps
};

// Thread-safe. Works on a thread of its own, with a tower and variables of its own.
class Evaluator {
 public:
  // What is pointed to outlives the evaluator. `on_result` tells that Results has news, on the
  // evaluator's thread. Errors are those of Tower::Create and VariableCache::Create: a tower that
  // does not fit the device is refused here, because a lease that fails for it would be given out
  // again for ever.
  static absl::StatusOr<std::unique_ptr<Evaluator>> Create(EvaluatorOptions options,
                                                           const ModelGraph* graph,
                                                           const VariableLayout* layout,
                                                           std::span<TensorTransport* const> shards,
                                                           Timer* timer, const TestSet* test_set,
                                                           std::function<void()> on_result);
  // Waits for the range in hand.
  ~Evaluator();

  // All leases that this worker holds now; what is not among them is dropped, results included.
  void SetLeases(const google::protobuf::RepeatedPtrField<EvaluationLease>& leases);
  std::vector<EvaluationResult> Results() const;

 private:
  Evaluator(EvaluatorOptions options, const ModelGraph* graph, const VariableLayout* layout,
            std::span<TensorTransport* const> shards, Timer* timer, const TestSet* test_set,
            std::function<void()> on_result);

  void Work();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes a tower for batches of `sizes`, besides those of the whole test set.
  absl::Status MakeTower(std::vector<int64_t> sizes);
  absl::Status MakeVariables();
  // Makes a tower for this lease, where that of the whole test set does not take its batches.
  absl::Status Prepare(const EvaluationLease& lease);
  absl::StatusOr<EvaluationResult> Evaluate(const EvaluationLease& lease);
  // What the batch reads, of exactly this version.
  absl::StatusOr<VariableValues> VariablesOf(GlobalStep version, const Batch& batch);

  const EvaluatorOptions options_;
  const ModelGraph* const graph_;
  const VariableLayout* const layout_;
  const std::vector<TensorTransport*> shards_;
  Timer* const timer_;
  const TestSet* const test_set_;
  const std::function<void()> on_result_;

  // Of the thread, once it runs.
  std::unique_ptr<VariableCache> variables_;
  std::vector<std::unique_ptr<ShardSession>> sessions_;  // fill the variables
  std::unique_ptr<BatchRows> rows_;
  std::unique_ptr<Tower> tower_;
  std::vector<int64_t> batches_;  // the sizes that it was made for

  mutable absl::Mutex mutex_;
  std::map<uint64_t, EvaluationLease> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, EvaluationResult> results_ ABSL_GUARDED_BY(mutex_);
  uint64_t in_hand_ ABSL_GUARDED_BY(mutex_) = 0;  // lease id; 0: none
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: uses all above. Not joinable: there is no tower
};

}  // namespace lockstep::worker
