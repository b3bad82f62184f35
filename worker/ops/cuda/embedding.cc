#include "worker/ops/embedding.h"

#include "absl/strings/str_cat.h"
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
  // `positions`: an int32 for each index; `rows`: an int64 for each row that the variable can hold.
  EmbeddingOp(const EmbeddingOptions& options, const EmbeddingKernels& kernels,
              DeviceBuffer positions, DeviceBuffer rows)
      : options_(options),
        num_indices_(options.batch * options.indices),
        count_(options.combiner == EmbeddingCombiner::kSum ? options.indices : 1),
        kernels_(kernels),
        positions_(std::move(positions)),
        rows_(std::move(rows)) {}

  absl::Status Forward(const ForwardArgs& args, Stream* stream) override {
    const bool whole = args.rows.empty();
    num_held_ = whole ? options_.rows : static_cast<int64_t>(args.rows[0].size());
    if (!whole) {
      if (num_held_ > MostRows(options_)) {
        return absl::InvalidArgumentError(absl::StrCat("op \"embedding\" was made for ",
                                                       MostRows(options_),
                                                       " rows of its table, got ", num_held_));
      }
      stream->CopyToDevice(rows(), args.rows[0].data(), args.rows[0].size_bytes());
    }
    kernels_.find_rows.Launch(stream, num_indices_, positions(), args.inputs[0].as<float>().data(),
                              whole ? nullptr : rows(), num_held_, num_indices_);
    const int64_t outputs = num_indices_ / count_;
    kernels_.forward.Launch(stream, outputs * options_.dim, args.output.as<float>().data(),
                            static_cast<const float*>(args.variables[0].data), positions(), count_,
                            outputs, options_.dim);
    return absl::OkStatus();
  }

  absl::Status Backward(const BackwardArgs& args, Stream* stream) override {
    if (!options_.variable_gradients) return absl::OkStatus();
    kernels_.backward.LaunchBlocks(stream, (num_held_ + kRowThreads - 1) / kRowThreads,
                                   static_cast<float*>(args.variable_gradients[0].data),
                                   args.output_gradient.as<float>().data(), positions(), count_,
                                   num_indices_, num_held_, options_.dim);
    return absl::OkStatus();
  }

  static int64_t MostRows(const EmbeddingOptions& options) {
    return options.most_rows == 0 ? options.rows : options.most_rows;
  }

 private:
  int32_t* positions() const { return reinterpret_cast<int32_t*>(positions_.get()); }
  int64_t* rows() const { return reinterpret_cast<int64_t*>(rows_.get()); }

  const EmbeddingOptions options_;
  const int64_t num_indices_;
  const int64_t count_;  // indices whose rows are added up
  const EmbeddingKernels kernels_;
  // Of the last Forward.
  const DeviceBuffer positions_;
  const DeviceBuffer rows_;
  int64_t num_held_ = 0;  // rows of the variable
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
  const auto most_rows = static_cast<size_t>(EmbeddingOp::MostRows(options));
  LOCKSTEP_ASSIGN_OR_RETURN(DeviceBuffer rows,
                            context->device()->Allocate(most_rows * sizeof(int64_t)));
  return std::make_unique<EmbeddingOp>(options, EmbeddingKernels{find_rows, forward, backward},
                                       std::move(positions), std::move(rows));
}

const Registration<&MakeEmbedding> kEmbedding;

}  // namespace
}  // namespace lockstep::worker::cuda
