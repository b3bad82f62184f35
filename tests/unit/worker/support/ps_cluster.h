// Parameter servers in this process with a chief that does nothing but grant and commit: for what a
// worker does to them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/job.pb.h"
#include "proto/tensor.pb.h"
#include "ps/shard/shard.h"
#include "tests/support/ps_data.h"

namespace lockstep::worker::test {

struct PsClusterOptions {
  Placement placement;
  OptimizerDef optimizer;  // with the learning rate
  uint64_t seed = 0;
  uint32_t workers = 1;
  bool asynchronous = false;
  std::optional<int64_t> max_staleness;
  std::string restore_from;
  int64_t start = 0;  // steps [start, end)
  int64_t end = 1;
};

// Aborts the test where a call of the chief's is refused.
class PsCluster {
 public:
  explicit PsCluster(const PsClusterOptions& options);
  // After the workers' threads.
  ~PsCluster();

  // Of a synchronous job: grants and commits all steps as their gradients come; after the last one
  // tokens say done.
  void RunSteps();
  // Of each step that is over: the last variable of the placement.
  std::vector<float> losses();
  // Writes a checkpoint of the last step and returns its folder.
  std::string Save(const std::string& root);

  WorkerIdentity Identity(uint32_t worker) const;
  std::span<PsData* const> data() const { return pointers_; }
  std::span<TensorTransport* const> transports() const { return transports_; }
  ps::Shard& shard(size_t k) { return *shards_[k]; }

 private:
  void GrantAll(int64_t step);
  void Closed(const ps::ClosedStep& closed);

  const PsClusterOptions options_;
  std::vector<std::unique_ptr<ps::Shard>> shards_;
  std::vector<std::unique_ptr<PsData>> data_;
  std::vector<PsData*> pointers_;
  std::vector<TensorTransport*> transports_;  // the same
  absl::Mutex mutex_;
  size_t closed_ ABSL_GUARDED_BY(mutex_) = 0;  // shards, of the step at hand
  std::vector<float> losses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker::test
