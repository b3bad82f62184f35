// One function per op, behind the factory. Each throws what oneDNN throws.
#pragma once

#include <memory>

#include "worker/ops/cpu/onednn.h"
#include "worker/ops/op_factory.h"

namespace lockstep::worker::cpu {

// `onednn` outlives the op.
std::unique_ptr<Op> MakeDense(OneDnn* onednn, const DenseOptions& options);
std::unique_ptr<Op> MakeConv2D(OneDnn* onednn, const Conv2DOptions& options);
std::unique_ptr<Op> MakePool(OneDnn* onednn, const PoolOptions& options);
std::unique_ptr<Op> MakeActivation(OneDnn* onednn, const ActivationOptions& options);
std::unique_ptr<Op> MakeBatchNorm(OneDnn* onednn, const BatchNormOptions& options);
std::unique_ptr<Op> MakeDropout(const DropoutOptions& options);
std::unique_ptr<Op> MakeAdd(const AddOptions& options);
std::unique_ptr<Op> MakeConcatenate(const ConcatenateOptions& options);
std::unique_ptr<Op> MakeColumns(const ColumnsOptions& options);
std::unique_ptr<Op> MakeEmbedding(const EmbeddingOptions& options);
std::unique_ptr<Op> MakeSynthetic(const SyntheticOptions& options);
std::unique_ptr<Loss> MakeLoss(const LossOptions& options);

}  // namespace lockstep::worker::cpu
