// The part of NVML that is used, as nvml.h has it. It is declared here, so that a build needs no
// header: CUDA's toolkit has it, its Python packages do not.
#pragma once

namespace lockstep::worker::cuda {

using NvmlResult = int;
struct NvmlDevice_st;
struct NvmlEventSet_st;
using NvmlDeviceHandle = NvmlDevice_st*;
using NvmlEventSet = NvmlEventSet_st*;

inline constexpr NvmlResult kNvmlSuccess = 0;
inline constexpr NvmlResult kNvmlTimeout = 10;
inline constexpr NvmlResult kNvmlGpuIsLost = 15;

inline constexpr unsigned long long kNvmlEventDoubleBitEccError = 2;
inline constexpr unsigned long long kNvmlEventXidCriticalError = 8;

struct NvmlUtilization {
  unsigned int gpu = 0;     // percent of the last moments in which a kernel ran
  unsigned int memory = 0;  // in which memory was read or written
};

struct NvmlEventData {
  NvmlDeviceHandle device = nullptr;
  unsigned long long type = 0;
  unsigned long long data = 0;  // of an Xid: its number
  unsigned int gpu_instance = 0;
  unsigned int compute_instance = 0;
};

// FUNCTION(name, result, symbol of libnvidia-ml.so, parameters) for each.
#define LOCKSTEP_NVML_FUNCTIONS(FUNCTION)                                         \
  FUNCTION(Init, NvmlResult, nvmlInit_v2, ())                                     \
  FUNCTION(ErrorString, const char*, nvmlErrorString, (NvmlResult result))        \
  FUNCTION(DeviceByPciBusId, NvmlResult, nvmlDeviceGetHandleByPciBusId_v2,        \
           (const char* id, NvmlDeviceHandle* device))                            \
  FUNCTION(UtilizationRates, NvmlResult, nvmlDeviceGetUtilizationRates,           \
           (NvmlDeviceHandle device, NvmlUtilization * rates))                    \
  FUNCTION(SupportedEventTypes, NvmlResult, nvmlDeviceGetSupportedEventTypes,     \
           (NvmlDeviceHandle device, unsigned long long* types))                  \
  FUNCTION(EventSetCreate, NvmlResult, nvmlEventSetCreate, (NvmlEventSet * set))  \
  FUNCTION(RegisterEvents, NvmlResult, nvmlDeviceRegisterEvents,                  \
           (NvmlDeviceHandle device, unsigned long long types, NvmlEventSet set)) \
  FUNCTION(EventSetWait, NvmlResult, nvmlEventSetWait_v2,                         \
           (NvmlEventSet set, NvmlEventData * event, unsigned int timeout_ms))    \
  FUNCTION(EventSetFree, NvmlResult, nvmlEventSetFree, (NvmlEventSet set))

struct NvmlFunctions {
#define LOCKSTEP_DECLARE_FUNCTION(name, result, symbol, parameters) \
  result(*name) parameters = nullptr;
  LOCKSTEP_NVML_FUNCTIONS(LOCKSTEP_DECLARE_FUNCTION)
#undef LOCKSTEP_DECLARE_FUNCTION
};

}  // namespace lockstep::worker::cuda
