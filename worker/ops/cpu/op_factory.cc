#include "worker/ops/cpu/op_factory.h"

#include "worker/ops/cpu/ops.h"

namespace lockstep::worker::cpu {
namespace {

class CpuOpFactory : public OpFactory {
 public:
  explicit CpuOpFactory(const Device* device) : onednn_(device) {}

  Made<Op> MakeDense(const DenseOptions& options) override {
    return CatchErrors<Made<Op>>("dense", [&] { return cpu::MakeDense(&onednn_, options); });
  }
  Made<Op> MakeConv2D(const Conv2DOptions& options) override {
    return CatchErrors<Made<Op>>("conv2d", [&] { return cpu::MakeConv2D(&onednn_, options); });
  }
  Made<Op> MakePool(const PoolOptions& options) override {
    return CatchErrors<Made<Op>>("pool", [&] { return cpu::MakePool(&onednn_, options); });
  }
  Made<Op> MakeActivation(const ActivationOptions& options) override {
    return CatchErrors<Made<Op>>("activation",
                                 [&] { return cpu::MakeActivation(&onednn_, options); });
  }
  Made<Op> MakeBatchNorm(const BatchNormOptions& options) override {
    return CatchErrors<Made<Op>>("batch_norm",
                                 [&] { return cpu::MakeBatchNorm(&onednn_, options); });
  }
  Made<Op> MakeDropout(const DropoutOptions& options) override {
    return CatchErrors<Made<Op>>("dropout", [&] { return cpu::MakeDropout(options); });
  }
  Made<Op> MakeAdd(const AddOptions& options) override {
    return CatchErrors<Made<Op>>("add", [&] { return cpu::MakeAdd(options); });
  }
  Made<Op> MakeConcatenate(const ConcatenateOptions& options) override {
    return CatchErrors<Made<Op>>("concatenate", [&] { return cpu::MakeConcatenate(options); });
  }
  Made<Op> MakeColumns(const ColumnsOptions& options) override {
    return CatchErrors<Made<Op>>("columns", [&] { return cpu::MakeColumns(options); });
  }
  Made<Op> MakeEmbedding(const EmbeddingOptions& options) override {
    return CatchErrors<Made<Op>>("embedding", [&] { return cpu::MakeEmbedding(options); });
  }
  Made<Op> MakeSynthetic(const SyntheticOptions& options) override {
    return CatchErrors<Made<Op>>("synthetic", [&] { return cpu::MakeSynthetic(options); });
  }
  Made<Loss> MakeLoss(const LossOptions& options) override {
    return CatchErrors<Made<Loss>>("loss", [&] { return cpu::MakeLoss(options); });
  }

 private:
  OneDnn onednn_;
};

}  // namespace

std::unique_ptr<OpFactory> MakeOpFactory(const Device* device) {
  return std::make_unique<CpuOpFactory>(device);
}

}  // namespace lockstep::worker::cpu
