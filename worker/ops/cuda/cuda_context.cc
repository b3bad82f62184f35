#include "worker/ops/cuda/cuda_context.h"

#include "common/base/status_macros.h"
#include "worker/ops/cuda/kernel_image.h"

namespace lockstep::worker::cuda {

OpTable::MadeOr<OpContext> CudaContext::Create(Device* device) {
  auto* const own = static_cast<CudaDevice*>(device);
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<CudaModule> module,
                            CudaModule::Load(own, lockstep_kernels));
  return std::unique_ptr<OpContext>(new CudaContext(own, std::move(module)));
}

}  // namespace lockstep::worker::cuda
