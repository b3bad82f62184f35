#include "worker/ops/embedding.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/embedding.cuh"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

struct EmbeddingKernels {
  Kernel<decltype(lockstep_find_rows)> find_rows;
  Kernel<decltype(lockstep_embedding)> forward;
  Kernel<decltype(lockstep_embedding_gradient)> backward;
};

class EmbeddingOp : public Op {
 public:
  // `positions`: an int32 for each index.
  EmbeddingOp(const EmbeddingOptions& options, const EmbeddingKernels& kernels,
              DeviceBuffer positions)
      : options_(options),
        num_indices_(options.batch * options.indices),
        count_(options.combiner == EmbeddingCombiner::kSum ? options.indices : 1),
        kernels_(kernels),
        positions_(std::move(positions)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    const bool whole = args.rows.empty();
    held_ = whole ? TableRows() : args.rows[0];
    most_held_ = whole || options_.most_rows == 0 ? options_.rows : options_.most_rows;
    kernels_.find_rows.Launch(stream, num_indices_, positions(), args.inputs[0].as<float>().data(),
                              held_.rows, held_.count, options_.rows, num_indices_);
    const int64_t outputs = num_indices_ / count_;
    kernels_.forward.Launch(stream, outputs * options_.dim, args.output.as<float>().data(),
                            static_cast<const float*>(args.variables[0].data), positions(), count_,
                            outputs, options_.dim);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!options_.variable_gradients) return absl::OkStatus();
    // How many rows there are only the device knows. Blocks beyond them end at once.
    kernels_.backward.LaunchBlocks(stream, (most_held_ + kRowThreads - 1) / kRowThreads,
                                   static_cast<float*>(args.variable_gradients[0].data),
                                   args.output_gradient.as<float>().data(), positions(), count_,
                                   num_indices_, held_.count, options_.rows, options_.dim);
    return absl::OkStatus();
  }

 private:
  int32_t* positions() const { return reinterpret_cast<int32_t*>(positions_.get()); }

  const EmbeddingOptions options_;
  const int64_t num_indices_;
  const int64_t count_;  // indices whose rows are added up
  const EmbeddingKernels kernels_;
  // Of the last Forward.
  const DeviceBuffer positions_;
  TableRows held_;         // by the variable; null: all
  int64_t most_held_ = 0;  // how many these can be
};

OpTable::MadeOr<Op> MakeEmbedding(CudaContext* context, const EmbeddingOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto find_rows,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_find_rows));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto forward, LOCKSTEP_FIND_KERNEL(context, lockstep_embedding));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto backward,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_embedding_gradient));
  const auto indices = static_cast<size_t>(options.batch * options.indices);
  LOCKSTEP_ASSIGN_OR_RETURN(DeviceBuffer positions,
                            context->device()->Allocate(indices * sizeof(int32_t)));
  return std::make_unique<EmbeddingOp>(options, EmbeddingKernels{find_rows, forward, backward},
                                       std::move(positions));
}

const Registration<&MakeEmbedding> kEmbedding;

}  // namespace
}  // namespace lockstep::worker::cuda
