// The ops of one device: what a CPU, a GPU and any later backend each implement.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/ops/activation.h"
#include "worker/ops/add.h"
#include "worker/ops/batch_norm.h"
#include "worker/ops/columns.h"
#include "worker/ops/concatenate.h"
#include "worker/ops/conv2d.h"
#include "worker/ops/dense.h"
#include "worker/ops/dropout.h"
#include "worker/ops/embedding.h"
#include "worker/ops/loss.h"
#include "worker/ops/op.h"
#include "worker/ops/pool.h"
#include "worker/ops/synthetic.h"

namespace lockstep::worker {

// Outlives what it makes; everything made by one factory runs on one thread at a time (scratch
// memory is shared). Make functions are called with the device current, and fail with
// RESOURCE_EXHAUSTED or INTERNAL when the library behind them does.
class OpFactory {
 public:
  template <typename T>
  using Made = absl::StatusOr<std::unique_ptr<T>>;

  virtual ~OpFactory() = default;
  virtual Made<Op> MakeDense(const DenseOptions& options) = 0;
  virtual Made<Op> MakeConv2D(const Conv2DOptions& options) = 0;
  virtual Made<Op> MakePool(const PoolOptions& options) = 0;
  virtual Made<Op> MakeActivation(const ActivationOptions& options) = 0;
  virtual Made<Op> MakeBatchNorm(const BatchNormOptions& options) = 0;
  virtual Made<Op> MakeDropout(const DropoutOptions& options) = 0;
  virtual Made<Op> MakeAdd(const AddOptions& options) = 0;
  virtual Made<Op> MakeConcatenate(const ConcatenateOptions& options) = 0;
  virtual Made<Op> MakeColumns(const ColumnsOptions& options) = 0;
  virtual Made<Op> MakeEmbedding(const EmbeddingOptions& options) = 0;
  virtual Made<Op> MakeSynthetic(const SyntheticOptions& options) = 0;
  virtual Made<Loss> MakeLoss(const LossOptions& options) = 0;
};

}  // namespace lockstep::worker
