// Our declarations of the driver's interface against the toolkit's.
#include "worker/device/cuda/driver.h"
// Its macros rename functions, so it comes after ours.
#include <cuda.h>

#include <catch2/catch.hpp>

#include "tests/support/cuda/same_call.h"

namespace lockstep::worker::cuda {
namespace {

#define LOCKSTEP_COMPARE(name, symbol, parameters)                                        \
  static_assert(test::SameCall(decltype(DriverFunctions::name){}, decltype(&::symbol){}), \
                #symbol " has other parameters in cuda.h");
LOCKSTEP_CUDA_DRIVER_FUNCTIONS(LOCKSTEP_COMPARE)
#undef LOCKSTEP_COMPARE

static_assert(sizeof(::CUresult) == sizeof(CUresult) && sizeof(::CUdevice) == sizeof(CUdevice));
static_assert(sizeof(::CUdeviceptr) == sizeof(CUdeviceptr));

static_assert(kSuccess == CUDA_SUCCESS);
static_assert(kErrorOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kErrorStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(kErrorDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(kErrorNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kErrorNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(kErrorUnsupportedPtxVersion == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(kErrorNotReady == CUDA_ERROR_NOT_READY);
static_assert(kErrorPeerAccessAlreadyEnabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(kErrorNotPermitted == CUDA_ERROR_NOT_PERMITTED);
static_assert(kErrorNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(kErrorCaptureUnsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(kErrorCaptureInvalidated == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(kErrorCaptureIsolation == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
static_assert(kErrorCapturedEvent == CUDA_ERROR_CAPTURED_EVENT);
static_assert(kErrorCaptureWrongThread == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
static_assert(kErrorSystemNotReady == CUDA_ERROR_SYSTEM_NOT_READY);
static_assert(kErrorMpsConnectionFailed == CUDA_ERROR_MPS_CONNECTION_FAILED);
static_assert(kErrorMpsMaxConnectionsReached == CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED);
static_assert(kErrorSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(kAttributeComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kAttributeComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventBlockingSync == CU_EVENT_BLOCKING_SYNC);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kEventRecordExternal == CU_EVENT_RECORD_EXTERNAL);
static_assert(kEventWaitExternal == CU_EVENT_WAIT_EXTERNAL);
static_assert(kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(kMemHostPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kMemHostPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(kMemHostReadOnly == CU_MEMHOSTREGISTER_READ_ONLY);

TEST_CASE("the build knows the version of its toolkit") { CHECK(ToolkitVersion() == CUDA_VERSION); }

}  // namespace
}  // namespace lockstep::worker::cuda
