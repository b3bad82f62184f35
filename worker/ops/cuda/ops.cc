#include "worker/ops/cuda/ops.h"

#include "worker/ops/cuda/cuda_context.h"

namespace lockstep::worker::cuda {

OpTable& MutableOps() {
  static OpTable table(&CudaContext::Create);
  return table;
}

const OpTable& Ops() { return MutableOps(); }

}  // namespace lockstep::worker::cuda
