// The training data of one replica: which examples belong to a step is a function of (seed,
// replica, step) alone, never of the history of the process. Batches are prepared ahead on a thread
// of the pipeline's own.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/dataset/example_spec.h"
#include "common/replicas/replica_view.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor_maker.h"
#include "proto/job.pb.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

// Unless data.auto_shard or data.transform says otherwise, step s of the job takes the examples
// [s*G, (s+1)*G) of an endless stream (one permutation per data epoch); replica r of R takes the
// r-th of R equal parts, tower t of D the t-th of D equal parts of that.
struct PipelineOptions {
  uint64_t seed = 0;
  uint32_t replica = 0;
  uint32_t num_replicas = 1;
  int64_t batch_per_tower = 0;
  int64_t towers = 1;
  TensorMaker make_tensor = OnHeap;  // of the batches
  // Steps whose batches the pipeline's reader has a copy of in the host's memory. They count where
  // it is checked whether the batches fit.
  int64_t copied_batches = 0;
};

class Pipeline {
 public:
  // Opens and checks the training files. NOT_FOUND for a missing file; DATA_LOSS (file, offset or
  // line, expected, got) for wrong bytes; INVALID_ARGUMENT where the files do not fit the model,
  // labels and row indices included, or the job would change row indices. RESOURCE_EXHAUSTED where
  // the batches do not fit the memory.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Open(const DataDef& data,
                                                        const ExampleSpec& spec,
                                                        const PipelineOptions& options);
  // For towers that train by themselves: tower t's pipeline gives it alone what Open gives tower t,
  // as batches of one tower. All of them share the examples in memory.
  static absl::StatusOr<std::vector<std::unique_ptr<Pipeline>>> OpenPerTower(
      const DataDef& data, const ExampleSpec& spec, const PipelineOptions& options);
  // For a job whose workers come and go: which part of the global batch the replica takes is told
  // by UseShare, before the first batch. `options.batch_per_tower` is the most that a share gives;
  // what they say of replicas does not count.
  static absl::StatusOr<std::unique_ptr<Pipeline>> OpenShared(const DataDef& data,
                                                              const ExampleSpec& spec,
                                                              const PipelineOptions& options,
                                                              int64_t global_batch);
  virtual ~Pipeline() = default;

  // Of OpenShared: from now on the batches are those of this share, which takes part (CHECK), and
  // those handed out are gone. INVALID_ARGUMENT: the global batch does not divide so.
  // FAILED_PRECONDITION: of another pipeline.
  virtual absl::Status UseShare(const ReplicaShare& share);

  // One batch per tower for this step. Blocks until it is ready; fast when steps are asked for in
  // ascending order. The batches stay valid until the next call. One caller at a time.
  // INVALID_ARGUMENT for a step below 0 or so high that its examples cannot be counted.
  virtual absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) = 0;

  // Ends BatchesFor, now and later, with CANCELLED where it would take long: a step of transformed
  // data is reached by reading the numbers of all examples before it. Thread-safe.
  virtual void Cancel() {}

  // Whether BatchesFor would not block.
  virtual bool IsReady(GlobalStep step) const = 0;

  // What the batches of a step take, by tower, where each of their tensors is aligned. Empty: they
  // are on the towers' devices, or have no size before UseShare.
  virtual std::vector<size_t> AlignedBytes() const { return {}; }

  virtual int64_t num_examples() const = 0;
  // The last one that BatchesFor takes.
  virtual int64_t last_step() const = 0;
};

// Whether the job has examples to evaluate on.
bool HasTestSet(const DataDef& data);

// The test files, read in ranges for evaluation and prediction. They may lack labels (IDX: no
// test_labels; CSV: no label_column); batches then have empty labels. Thread-safe.
class TestSet {
 public:
  static absl::StatusOr<std::unique_ptr<TestSet>> Open(const DataDef& data,
                                                       const ExampleSpec& spec);
  virtual ~TestSet() = default;
  virtual int64_t num_examples() const = 0;
  virtual bool has_labels() const = 0;
  // Examples [begin, end), scaled, not augmented. INVALID_ARGUMENT for a range outside.
  virtual absl::StatusOr<Batch> Read(int64_t begin, int64_t end) const = 0;
};

}  // namespace lockstep::worker
