// The part of CUDA's driver interface that is used, as cuda.h has it. It is declared here, so that
// a build needs no toolkit and a program starts without a driver. cuda_header_test compares it with
// cuda.h.
#pragma once

#include <cstddef>

namespace lockstep::worker::cuda {

using CUresult = int;
using CUdevice = int;

// Results that are treated apart.
inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kErrorOutOfMemory = 2;
inline constexpr CUresult kErrorStubLibrary = 34;
inline constexpr CUresult kErrorNoDevice = 100;
inline constexpr CUresult kErrorSystemDriverMismatch = 803;

inline constexpr int kAttributeComputeCapabilityMajor = 75;
inline constexpr int kAttributeComputeCapabilityMinor = 76;

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
  FUNCTION(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))

struct DriverFunctions {
#define LOCKSTEP_DECLARE_FUNCTION(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  LOCKSTEP_CUDA_DRIVER_FUNCTIONS(LOCKSTEP_DECLARE_FUNCTION)
#undef LOCKSTEP_DECLARE_FUNCTION
};

}  // namespace lockstep::worker::cuda
