// A cuBLASLt over the fake driver: products are loops of the host, run when their stream comes to
// them. Refuses shapes that do not fit together. Handles that are made or destroyed wait for the
// device, as cuBLASLt may.
#pragma once

#include "worker/ops/cuda/cublas/cublas_lt_library.h"

namespace lockstep::test {

inline constexpr worker::cuda::CublasStatus kCublasInvalidValue = 7;

const worker::cuda::CublasLtLibrary& FakeCublasLt();

// Of the fake library's objects: those that were made and not destroyed.
int64_t LiveCublasLtObjects();

}  // namespace lockstep::test
