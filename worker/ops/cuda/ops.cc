#include "worker/ops/cuda/ops.h"

#include "worker/ops/cuda/cuda_context.h"

namespace lockstep::worker::cuda {

OpTable& MutableOps() {
  static OpTable table(&CudaContext::Create<Precision::kFloat32>);
  return table;
}

const OpTable& Ops(Precision precision) {
  static const OpTable tf32 = MutableOps().WithContext(&CudaContext::Create<Precision::kTf32>);
  static const OpTable bfloat16 =
      MutableOps().WithContext(&CudaContext::Create<Precision::kBfloat16>, DType::kBFloat16);
  switch (precision) {
    case Precision::kTf32:
      return tf32;
    case Precision::kBfloat16:
      return bfloat16;
    case Precision::kFloat32:
      break;
  }
  return MutableOps();
}

}  // namespace lockstep::worker::cuda
