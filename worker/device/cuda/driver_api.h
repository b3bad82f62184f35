// The part of CUDA's driver interface that is used, as cuda.h has it. It is declared here, so that
// a build needs no toolkit and a program starts without a driver. cuda_header_test compares it with
// cuda.h.
#pragma once

#include <cstddef>

namespace lockstep::worker::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;
using CUcontext = CUctx_st*;
using CUstream = CUstream_st*;
using CUevent = CUevent_st*;
using CUmodule = CUmod_st*;
using CUfunction = CUfunc_st*;
using CUgraph = CUgraph_st*;
using CUgraphExec = CUgraphExec_st*;  // ready to be launched

// Results that are treated apart.
inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kErrorInvalidValue = 1;
inline constexpr CUresult kErrorOutOfMemory = 2;
inline constexpr CUresult kErrorStubLibrary = 34;
inline constexpr CUresult kErrorDeviceUnavailable = 46;  // as its compute mode says
inline constexpr CUresult kErrorNoDevice = 100;
inline constexpr CUresult kErrorNoBinaryForGpu = 209;
inline constexpr CUresult kErrorUnsupportedPtxVersion = 222;
inline constexpr CUresult kErrorOperatingSystem = 304;
inline constexpr CUresult kErrorNotReady = 600;
inline constexpr CUresult kErrorPeerAccessAlreadyEnabled = 704;
inline constexpr CUresult kErrorNotPermitted = 800;
inline constexpr CUresult kErrorNotSupported = 801;
inline constexpr CUresult kErrorSystemNotReady = 802;
inline constexpr CUresult kErrorSystemDriverMismatch = 803;
// What the Multi-Process Service refuses: these and all in between.
inline constexpr CUresult kErrorMpsConnectionFailed = 805;
inline constexpr CUresult kErrorMpsMaxConnectionsReached = 809;
// What a capture refuses: these and all in between.
inline constexpr CUresult kErrorCaptureUnsupported = 900;
inline constexpr CUresult kErrorCaptureInvalidated = 901;
inline constexpr CUresult kErrorCaptureIsolation = 905;
inline constexpr CUresult kErrorCapturedEvent = 907;
inline constexpr CUresult kErrorCaptureWrongThread = 908;

inline constexpr int kAttributeComputeCapabilityMajor = 75;
inline constexpr int kAttributeComputeCapabilityMinor = 76;

inline constexpr unsigned int kStreamNonBlocking = 1;  // does not wait for the default stream
inline constexpr unsigned int kEventBlockingSync = 1;  // who waits for it sleeps
inline constexpr unsigned int kEventDisableTiming = 2;
// In a capture: each launch of the graph records the event, or waits for it.
inline constexpr unsigned int kEventRecordExternal = 1;
inline constexpr unsigned int kEventWaitExternal = 1;
inline constexpr int kCaptureThreadLocal = 1;        // other threads may make any call meanwhile
inline constexpr unsigned int kMemHostPortable = 1;  // pinned for every context of the process
inline constexpr unsigned int kMemHostReadOnly = 8;  // of a mapping that cannot be written

// FUNCTION(name, symbol of libcuda.so, parameters) for each. A symbol's version fixes its
// parameters.
#define LOCKSTEP_CUDA_DRIVER_FUNCTIONS(FUNCTION)                                                   \
  FUNCTION(Init, cuInit, (unsigned int flags))                                                     \
  FUNCTION(DriverGetVersion, cuDriverGetVersion, (int* version))                                   \
  FUNCTION(GetErrorName, cuGetErrorName, (CUresult result, const char** name))                     \
  FUNCTION(GetErrorString, cuGetErrorString, (CUresult result, const char** text))                 \
  FUNCTION(DeviceGetCount, cuDeviceGetCount, (int* count))                                         \
  FUNCTION(DeviceGet, cuDeviceGet, (CUdevice * device, int ordinal))                               \
  FUNCTION(DeviceGetName, cuDeviceGetName, (char* name, int size, CUdevice device))                \
  FUNCTION(DeviceGetAttribute, cuDeviceGetAttribute, (int* value, int attribute, CUdevice device)) \
  FUNCTION(DeviceGetPciBusId, cuDeviceGetPCIBusId, (char* id, int size, CUdevice device))          \
  FUNCTION(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                 \
  FUNCTION(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                                       \
           (CUcontext * context, CUdevice device))                                                 \
  FUNCTION(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device))               \
  FUNCTION(CtxSetCurrent, cuCtxSetCurrent, (CUcontext context))                                    \
  FUNCTION(CtxSynchronize, cuCtxSynchronize, ())                                                   \
  FUNCTION(MemGetInfo, cuMemGetInfo_v2, (size_t * free, size_t * total))                           \
  FUNCTION(MemAlloc, cuMemAlloc_v2, (CUdeviceptr * memory, size_t bytes))                          \
  FUNCTION(MemFree, cuMemFree_v2, (CUdeviceptr memory))                                            \
  FUNCTION(MemHostAlloc, cuMemHostAlloc, (void** memory, size_t bytes, unsigned int flags))        \
  FUNCTION(MemFreeHost, cuMemFreeHost, (void* memory))                                             \
  FUNCTION(MemHostRegister, cuMemHostRegister_v2,                                                  \
           (void* memory, size_t bytes, unsigned int flags))                                       \
  FUNCTION(MemHostUnregister, cuMemHostUnregister, (void* memory))                                 \
  FUNCTION(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                  \
           (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))                      \
  FUNCTION(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                  \
           (void* to, CUdeviceptr from, size_t bytes, CUstream stream))                            \
  FUNCTION(StreamCreate, cuStreamCreate, (CUstream * stream, unsigned int flags))                  \
  FUNCTION(StreamDestroy, cuStreamDestroy_v2, (CUstream stream))                                   \
  FUNCTION(StreamSynchronize, cuStreamSynchronize, (CUstream stream))                              \
  FUNCTION(StreamWaitEvent, cuStreamWaitEvent,                                                     \
           (CUstream stream, CUevent event, unsigned int flags))                                   \
  FUNCTION(EventCreate, cuEventCreate, (CUevent * event, unsigned int flags))                      \
  FUNCTION(EventDestroy, cuEventDestroy_v2, (CUevent event))                                       \
  FUNCTION(EventRecord, cuEventRecord, (CUevent event, CUstream stream))                           \
  FUNCTION(EventSynchronize, cuEventSynchronize, (CUevent event))                                  \
  FUNCTION(EventQuery, cuEventQuery, (CUevent event))                                              \
  FUNCTION(EventRecordWithFlags, cuEventRecordWithFlags,                                           \
           (CUevent event, CUstream stream, unsigned int flags))                                   \
  FUNCTION(StreamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, int mode))               \
  FUNCTION(StreamEndCapture, cuStreamEndCapture, (CUstream stream, CUgraph * graph))               \
  FUNCTION(GraphInstantiate, cuGraphInstantiateWithFlags,                                          \
           (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                    \
  FUNCTION(GraphUpload, cuGraphUpload, (CUgraphExec executable, CUstream stream))                  \
  FUNCTION(GraphLaunch, cuGraphLaunch, (CUgraphExec executable, CUstream stream))                  \
  FUNCTION(GraphExecDestroy, cuGraphExecDestroy, (CUgraphExec executable))                         \
  FUNCTION(GraphDestroy, cuGraphDestroy, (CUgraph graph))                                          \
  FUNCTION(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                  \
           (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                      \
  FUNCTION(MemcpyAsync, cuMemcpyAsync,                                                             \
           (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                      \
  FUNCTION(DeviceCanAccessPeer, cuDeviceCanAccessPeer,                                             \
           (int* can_access, CUdevice device, CUdevice peer))                                      \
  FUNCTION(CtxEnablePeerAccess, cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags))       \
  FUNCTION(ModuleLoadData, cuModuleLoadData, (CUmodule * module, const void* image))               \
  FUNCTION(ModuleUnload, cuModuleUnload, (CUmodule module))                                        \
  FUNCTION(ModuleGetFunction, cuModuleGetFunction,                                                 \
           (CUfunction * function, CUmodule module, const char* name))                             \
  FUNCTION(LaunchKernel, cuLaunchKernel,                                                           \
           (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,    \
            unsigned int block_x, unsigned int block_y, unsigned int block_z,                      \
            unsigned int shared_bytes, CUstream stream, void** arguments, void** extra))

struct DriverFunctions {
#define LOCKSTEP_DECLARE_FUNCTION(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  LOCKSTEP_CUDA_DRIVER_FUNCTIONS(LOCKSTEP_DECLARE_FUNCTION)
#undef LOCKSTEP_DECLARE_FUNCTION
};

}  // namespace lockstep::worker::cuda
