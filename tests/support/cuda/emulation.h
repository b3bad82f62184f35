// Emulates a GPU's kernel environment for g++: a file that includes this and then a .cu file
// compiles its kernels for the host. A thread of a block is a call of the kernel.
#pragma once

struct Dim3 {
  unsigned int x = 1, y = 1, z = 1;
};

// Values of the thread of a block that the calling thread emulates.
extern thread_local Dim3 threadIdx;
extern thread_local Dim3 blockIdx;
extern thread_local Dim3 blockDim;
extern thread_local Dim3 gridDim;

// One block runs at a time, so its memory is the program's.
#define __shared__ static

// Only in kernels that are registered as having barriers: all threads of a block come here.
void __syncthreads();
