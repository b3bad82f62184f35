#include "worker/ops/gru.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/recurrent_op.h"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

constexpr RecurrentKind kGruKind = {.gates = 3, .reset_after = true};  // z, r, h

struct GruKernels {
  Kernel<decltype(lockstep_gru)> forward;
  Kernel<decltype(lockstep_gru_gradient)> backward;
};

class GruOp : public RecurrentOp {
 public:
  GruOp(const GruOptions& options, RecurrentParts common, const GruKernels& kernels)
      : RecurrentOp(options, kGruKind, std::move(common)), kernels_(kernels) {}

 private:
  void BeginForward(const ForwardArgs&, Stream*) override {}

  void Activate(int64_t step, Stream* stream) override {
    kernels_.forward.Launch(stream, state_elements(), Gates(step), StateGates(step), Hidden(step),
                            Hidden(step + 1), batch(), units());
  }

  void BeginBackward(Stream*) override {}

  void Differentiate(int64_t step, float* gradient, Stream* stream) override {
    kernels_.backward.Launch(stream, state_elements(), Gates(step), StateGates(step), gradient,
                             Hidden(step), batch(), units());
  }

  void EndBackward(const BackwardArgs&, Stream*) override {}

  const GruKernels kernels_;
};

OpTable::MadeOr<Op> MakeGru(CudaContext* context, const GruOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto forward, LOCKSTEP_FIND_KERNEL(context, lockstep_gru));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto backward,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_gru_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(RecurrentParts common,
                            RecurrentParts::Make(context, options, kGruKind));
  return std::make_unique<GruOp>(options, std::move(common), GruKernels{forward, backward});
}

const Registration<&MakeGru> kGru;

}  // namespace
}  // namespace lockstep::worker::cuda
