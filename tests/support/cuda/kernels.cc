// The kernels of worker/ops/cuda, compiled for the host.
#include "tests/support/cuda/emulated_kernel.h"
#include "tests/support/cuda/emulation.h"
//
#include "worker/ops/cuda/activation.cu"
#include "worker/ops/cuda/add.cu"
#include "worker/ops/cuda/columns.cu"
#include "worker/ops/cuda/dropout.cu"
#include "worker/ops/cuda/mean.cu"

namespace lockstep::test {
namespace {

#define LOCKSTEP_EMULATE(kernel) \
  const RegisterEmulatedKernel register_##kernel(#kernel, {.bind = Binder(&kernel)})

LOCKSTEP_EMULATE(lockstep_relu);
LOCKSTEP_EMULATE(lockstep_tanh);
LOCKSTEP_EMULATE(lockstep_sigmoid);
LOCKSTEP_EMULATE(lockstep_relu_gradient);
LOCKSTEP_EMULATE(lockstep_tanh_gradient);
LOCKSTEP_EMULATE(lockstep_sigmoid_gradient);
LOCKSTEP_EMULATE(lockstep_add);
LOCKSTEP_EMULATE(lockstep_copy_columns);
LOCKSTEP_EMULATE(lockstep_columns_gradient);
LOCKSTEP_EMULATE(lockstep_dropout);
LOCKSTEP_EMULATE(lockstep_dropout_gradient);
LOCKSTEP_EMULATE(lockstep_scale);

}  // namespace
}  // namespace lockstep::test
