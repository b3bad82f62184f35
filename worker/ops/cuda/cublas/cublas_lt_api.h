// The part of cuBLASLt's interface that is used, as cublasLt.h has it. It is declared here, so that
// a build needs no toolkit and a program starts without the library. cublas_header_test compares it
// with cublasLt.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/device/cuda/driver_api.h"

namespace lockstep::worker::cuda {

using CublasStatus = int;
struct CublasLtContext;
struct CublasLtMatmulDesc;
struct CublasLtMatrixLayout;
struct CublasLtPreference;

inline constexpr CublasStatus kCublasSuccess = 0;
inline constexpr CublasStatus kCublasNotSupported = 15;

// CONSTANT(name, name in cublasLt.h, value) for each.
#define LOCKSTEP_CUBLAS_LT_CONSTANTS(CONSTANT)                                    \
  CONSTANT(kFloat32, CUDA_R_32F, 0)                                               \
  CONSTANT(kBfloat16, CUDA_R_16BF, 14)                                            \
  CONSTANT(kComputeFloat32, CUBLAS_COMPUTE_32F, 68) /* no TF32 */                 \
  CONSTANT(kComputeTf32, CUBLAS_COMPUTE_32F_FAST_TF32, 77)                        \
  CONSTANT(kOperationTranspose, CUBLAS_OP_T, 1)                                   \
  CONSTANT(kMatmulTransposeA, CUBLASLT_MATMUL_DESC_TRANSA, 3)                     \
  CONSTANT(kMatmulTransposeB, CUBLASLT_MATMUL_DESC_TRANSB, 4)                     \
  CONSTANT(kMatmulEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                     \
  CONSTANT(kMatmulBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                     \
  CONSTANT(kEpilogueDefault, CUBLASLT_EPILOGUE_DEFAULT, 1)                        \
  CONSTANT(kEpilogueRelu, CUBLASLT_EPILOGUE_RELU, 2)                              \
  CONSTANT(kEpilogueBias, CUBLASLT_EPILOGUE_BIAS, 4)                              \
  CONSTANT(kEpilogueReluBias, CUBLASLT_EPILOGUE_RELU_BIAS, 6)                     \
  CONSTANT(kPreferenceMostWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) \
  CONSTANT(kPreferenceAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)  \
  CONSTANT(kPreferenceAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)  \
  CONSTANT(kPreferenceAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)  \
  CONSTANT(kPreferenceAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)

#define LOCKSTEP_DECLARE_CONSTANT(name, symbol, value) inline constexpr int name = value;
LOCKSTEP_CUBLAS_LT_CONSTANTS(LOCKSTEP_DECLARE_CONSTANT)
#undef LOCKSTEP_DECLARE_CONSTANT

struct CublasLtAlgorithm {
  uint64_t data[8];
};

struct CublasLtHeuristicResult {
  CublasLtAlgorithm algorithm;
  size_t workspace_bytes;
  CublasStatus state;
  float waves;
  int reserved[4];
};

// FUNCTION(name, result, symbol of libcublasLt.so, parameters) for each.
#define LOCKSTEP_CUBLAS_LT_FUNCTIONS(FUNCTION)                                                   \
  FUNCTION(GetStatusName, const char*, cublasLtGetStatusName, (CublasStatus status))             \
  FUNCTION(Create, CublasStatus, cublasLtCreate, (CublasLtContext * *handle))                    \
  FUNCTION(Destroy, CublasStatus, cublasLtDestroy, (CublasLtContext * handle))                   \
  FUNCTION(MatmulDescCreate, CublasStatus, cublasLtMatmulDescCreate,                             \
           (CublasLtMatmulDesc * *matmul, int compute_type, int scale_type))                     \
  FUNCTION(MatmulDescDestroy, CublasStatus, cublasLtMatmulDescDestroy,                           \
           (CublasLtMatmulDesc * matmul))                                                        \
  FUNCTION(MatmulDescSetAttribute, CublasStatus, cublasLtMatmulDescSetAttribute,                 \
           (CublasLtMatmulDesc * matmul, int attribute, const void* value, size_t bytes))        \
  FUNCTION(MatrixLayoutCreate, CublasStatus, cublasLtMatrixLayoutCreate,                         \
           (CublasLtMatrixLayout * *layout, int type, uint64_t rows, uint64_t columns,           \
            int64_t leading_dimension))                                                          \
  FUNCTION(MatrixLayoutDestroy, CublasStatus, cublasLtMatrixLayoutDestroy,                       \
           (CublasLtMatrixLayout * layout))                                                      \
  FUNCTION(PreferenceCreate, CublasStatus, cublasLtMatmulPreferenceCreate,                       \
           (CublasLtPreference * *preference))                                                   \
  FUNCTION(PreferenceDestroy, CublasStatus, cublasLtMatmulPreferenceDestroy,                     \
           (CublasLtPreference * preference))                                                    \
  FUNCTION(PreferenceSetAttribute, CublasStatus, cublasLtMatmulPreferenceSetAttribute,           \
           (CublasLtPreference * preference, int attribute, const void* value, size_t bytes))    \
  FUNCTION(                                                                                      \
      AlgoGetHeuristic, CublasStatus, cublasLtMatmulAlgoGetHeuristic,                            \
      (CublasLtContext * handle, CublasLtMatmulDesc * matmul, CublasLtMatrixLayout * a,          \
       CublasLtMatrixLayout * b, CublasLtMatrixLayout * c, CublasLtMatrixLayout * d,             \
       CublasLtPreference * preference, int room, CublasLtHeuristicResult* results, int* count)) \
  FUNCTION(                                                                                      \
      Matmul, CublasStatus, cublasLtMatmul,                                                      \
      (CublasLtContext * handle, CublasLtMatmulDesc * matmul, const void* alpha, const void* a,  \
       CublasLtMatrixLayout* a_layout, const void* b, CublasLtMatrixLayout* b_layout,            \
       const void* beta, const void* c, CublasLtMatrixLayout* c_layout, void* d,                 \
       CublasLtMatrixLayout* d_layout, const CublasLtAlgorithm* algorithm, void* workspace,      \
       size_t workspace_bytes, CUstream stream))

struct CublasLtFunctions {
#define LOCKSTEP_DECLARE_FUNCTION(name, result, symbol, parameters) \
  result(*name) parameters = nullptr;
  LOCKSTEP_CUBLAS_LT_FUNCTIONS(LOCKSTEP_DECLARE_FUNCTION)
#undef LOCKSTEP_DECLARE_FUNCTION
};

}  // namespace lockstep::worker::cuda
