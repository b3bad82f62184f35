#include "worker/ops/cpu/cpu_op.h"

#include "worker/device/host_stream.h"
#include "worker/ops/cpu/onednn.h"

namespace lockstep::worker::cpu {
namespace {

// Has the stream call (op->*kRun)(args).
template <auto kRun, typename T, typename Args>
absl::Status EnqueueCall(T* op, const Args& args, Stream* stream) {
  const auto run = [](void* object, const void* argument, uint64_t) {
    return CatchErrors<absl::Status>("op", [&] {
      (static_cast<T*>(object)->*kRun)(*static_cast<const Args*>(argument));
      return absl::OkStatus();
    });
  };
  static_cast<HostStream*>(stream)->Enqueue({run, op, &args});
  return absl::OkStatus();
}

}  // namespace

absl::Status CpuOp::Forward(const ForwardArgs& args, Stream* stream) {
  return EnqueueCall<&CpuOp::RunForward>(this, args, stream);
}

absl::Status CpuOp::Backward(const BackwardArgs& args, Stream* stream) {
  return EnqueueCall<&CpuOp::RunBackward>(this, args, stream);
}

absl::Status CpuLoss::Train(const Args& args, Stream* stream) {
  return EnqueueCall<&CpuLoss::RunTrain>(this, args, stream);
}

absl::Status CpuLoss::Evaluate(const Args& args, Stream* stream) {
  return EnqueueCall<&CpuLoss::RunEvaluate>(this, args, stream);
}

absl::Status CpuLoss::Predict(const Args& args, Stream* stream) {
  return EnqueueCall<&CpuLoss::RunPredict>(this, args, stream);
}

absl::Status CpuGradientOp::Run(const Args& args, Stream* stream) {
  return EnqueueCall<&CpuGradientOp::RunNow>(this, args, stream);
}

}  // namespace lockstep::worker::cpu
