#include "worker/ops/cuda/ops.h"

#include "worker/ops/cuda/cuda_context.h"

namespace lockstep::worker::cuda {

OpTable& MutableOps() {
  static OpTable table(&CudaContext::Create<Precision::kFloat32>);
  return table;
}

const OpTable& Ops(Precision precision) {
  if (precision != Precision::kTf32) return MutableOps();
  static const OpTable table = MutableOps().WithContext(&CudaContext::Create<Precision::kTf32>);
  return table;
}

}  // namespace lockstep::worker::cuda
