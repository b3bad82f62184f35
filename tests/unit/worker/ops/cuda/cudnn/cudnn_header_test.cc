// Our declarations of cuDNN's interface against cudnn.h.
#include <cudnn.h>

#include "tests/support/cuda/same_call.h"
#include "worker/ops/cuda/cudnn/cudnn_api.h"

namespace lockstep::worker::cuda {
namespace {

// Attributes of handles are deprecated in favour of described devices, for which a plan is not
// ready to run.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define LOCKSTEP_COMPARE(name, symbol, value) static_assert(name == static_cast<int>(symbol));
LOCKSTEP_CUDNN_CONSTANTS(LOCKSTEP_COMPARE)
#undef LOCKSTEP_COMPARE
#pragma GCC diagnostic pop

static_assert(kCudnnSuccess == CUDNN_STATUS_SUCCESS);
static_assert(kCudnnNotSupported == CUDNN_STATUS_NOT_SUPPORTED);
static_assert(kCudnnCompilationFailed == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED);
static_assert(kCudnnNotSupported == CUDNN_STATUS_CATEGORY(CUDNN_STATUS_NOT_SUPPORTED_PADDING));

#define LOCKSTEP_COMPARE(name, result, symbol, parameters)                               \
  static_assert(test::SameCall(decltype(CudnnFunctions::name){}, decltype(&::symbol){}), \
                #symbol " has other parameters in cudnn.h");
LOCKSTEP_CUDNN_FUNCTIONS(LOCKSTEP_COMPARE)
#undef LOCKSTEP_COMPARE

}  // namespace
}  // namespace lockstep::worker::cuda
