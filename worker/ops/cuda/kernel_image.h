// All kernels of this folder, compiled: what CudaModule::Load takes. Empty in a build without CUDA.
#pragma once

extern "C" const unsigned char lockstep_kernels[];
