// The part of NCCL that is used, as nccl.h has it. It is declared here, so that a build needs no
// header. nccl_header_test compares it with nccl.h.
#pragma once

#include <cstddef>

#include "worker/device/cuda/driver_api.h"

namespace lockstep::worker::cuda {

using NcclResult = int;
struct NcclComm_st;
using NcclComm = NcclComm_st*;

inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclSum = 0;

// FUNCTION(name, result, symbol of libnccl.so, parameters) for each.
#define LOCKSTEP_NCCL_FUNCTIONS(FUNCTION)                                                        \
  FUNCTION(GetVersion, NcclResult, ncclGetVersion, (int* version))                               \
  FUNCTION(GetErrorString, const char*, ncclGetErrorString, (NcclResult result))                 \
  FUNCTION(GetLastError, const char*, ncclGetLastError, (NcclComm comm))                         \
  FUNCTION(CommInitAll, NcclResult, ncclCommInitAll,                                             \
           (NcclComm * comms, int count, const int* devices))                                    \
  FUNCTION(CommDestroy, NcclResult, ncclCommDestroy, (NcclComm comm))                            \
  FUNCTION(CommAbort, NcclResult, ncclCommAbort, (NcclComm comm))                                \
  FUNCTION(CommGetAsyncError, NcclResult, ncclCommGetAsyncError,                                 \
           (NcclComm comm, NcclResult * error))                                                  \
  FUNCTION(GroupStart, NcclResult, ncclGroupStart, ())                                           \
  FUNCTION(GroupEnd, NcclResult, ncclGroupEnd, ())                                               \
  FUNCTION(Reduce, NcclResult, ncclReduce,                                                       \
           (const void* from, void* to, size_t count, int type, int op, int root, NcclComm comm, \
            CUstream stream))

struct NcclFunctions {
#define LOCKSTEP_DECLARE_FUNCTION(name, result, symbol, parameters) \
  result(*name) parameters = nullptr;
  LOCKSTEP_NCCL_FUNCTIONS(LOCKSTEP_DECLARE_FUNCTION)
#undef LOCKSTEP_DECLARE_FUNCTION
};

}  // namespace lockstep::worker::cuda
