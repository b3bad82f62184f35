// Macros to declare and to write kernels. Nvcc and g++ read the declarations; g++ checks the
// arguments of a launch against them. Tests compile the .cu files for the host, too
// (tests/support/cuda/emulation.h), so kernels use nothing of a GPU that is not there.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define LOCKSTEP_KERNEL extern "C" __global__
#define LOCKSTEP_DEVICE __device__
// Before a loop whose copies would take too many registers.
#define LOCKSTEP_NO_UNROLL _Pragma("unroll 1")
// Before one whose turns are few, and known when it is compiled.
#define LOCKSTEP_UNROLL _Pragma("unroll")
// Before one that should have several loads under way.
#define LOCKSTEP_UNROLL_SOME _Pragma("unroll 4")
#else
#define LOCKSTEP_KERNEL extern "C"
#define LOCKSTEP_DEVICE
#define LOCKSTEP_NO_UNROLL
#define LOCKSTEP_UNROLL
#define LOCKSTEP_UNROLL_SOME
#endif
