#include "worker/ops/lstm.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/recurrent_op.h"
#include "worker/ops/cuda/registration.h"

namespace lockstep::worker::cuda {
namespace {

constexpr RecurrentKind kLstmKind = {.gates = 4, .reset_after = false};  // i, f, c, o

struct LstmParts {
  Kernel<decltype(lockstep_lstm)> forward;
  Kernel<decltype(lockstep_lstm_gradient)> backward;
  DeviceBuffer cells;  // [time + 1, batch, units]: c before each step, and the last
  DeviceBuffer dc;     // [batch, units]: the gradient of c, back to the step in hand; null without
                       // training
};

class LstmOp : public RecurrentOp {
 public:
  LstmOp(const LstmOptions& options, RecurrentParts common, LstmParts parts)
      : RecurrentOp(options, kLstmKind, std::move(common)), parts_(std::move(parts)) {}

 private:
  float* Cells(int64_t step) const { return At(parts_.cells, step * state_elements()); }

  void BeginForward(const ForwardArgs& args, Stream* stream) override {
    CopyState(has_initial_states() ? &args.inputs[2] : nullptr, Cells(0), stream);
  }

  void Activate(int64_t step, Stream* stream) override {
    parts_.forward.Launch(stream, state_elements(), Gates(step), StateGates(step), Cells(step),
                          Cells(step + 1), Hidden(step + 1), batch(), units());
  }

  void BeginBackward(Stream* stream) override { Zero(At(parts_.dc, 0), stream); }

  void Differentiate(int64_t step, float* gradient, Stream* stream) override {
    parts_.backward.Launch(stream, state_elements(), Gates(step), gradient, At(parts_.dc, 0),
                           Cells(step), Cells(step + 1), batch(), units());
  }

  void EndBackward(const BackwardArgs& args, Stream* stream) override {
    if (!has_initial_states() || args.input_gradients[2].data == nullptr) return;
    static_cast<CudaStream*>(stream)->CopyOnDevice(args.input_gradients[2].data, parts_.dc.get(),
                                                   args.input_gradients[2].num_bytes());
  }

  const LstmParts parts_;
};

OpTable::MadeOr<Op> MakeLstm(CudaContext* context, const LstmOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto forward, LOCKSTEP_FIND_KERNEL(context, lockstep_lstm));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto backward,
                            LOCKSTEP_FIND_KERNEL(context, lockstep_lstm_gradient));
  LOCKSTEP_ASSIGN_OR_RETURN(RecurrentParts common,
                            RecurrentParts::Make(context, options, kLstmKind));
  const size_t bytes = static_cast<size_t>(options.batch * options.units) * sizeof(float);
  LstmParts parts{forward, backward, {}, {}};
  LOCKSTEP_ASSIGN_OR_RETURN(
      parts.cells, context->device()->Allocate(static_cast<size_t>(options.time + 1) * bytes));
  if (options.training) {
    LOCKSTEP_ASSIGN_OR_RETURN(parts.dc, context->device()->Allocate(bytes));
  }
  return std::make_unique<LstmOp>(options, std::move(common), std::move(parts));
}

const Registration<&MakeLstm> kLstm;

}  // namespace
}  // namespace lockstep::worker::cuda
