// A product of matrices of fixed shapes, by cuBLASLt.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/dtype.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/ops/cuda/cublas/cublas_lt_library.h"

namespace lockstep::worker::cuda {

// What the products of one context share. Copies are the same object.
class CublasLtHandle {
 public:
  // `device` and `library` outlive it. It is made and destroyed while no stream of the device
  // captures: cuBLASLt may wait for the device then, and the capture would be lost. An error has
  // the exit code of a device that has failed; FAILED_PRECONDITION with the remedy: the GPU works.
  static absl::StatusOr<CublasLtHandle> Create(const CudaDevice* device,
                                               const CublasLtLibrary* library);

  const CublasLtLibrary& library() const { return *library_; }
  CublasLtContext* get() const { return handle_.get(); }

 private:
  CublasLtHandle(const CudaDevice* device, const CublasLtLibrary* library, CublasLtContext* handle);

  const CublasLtLibrary* library_;
  std::shared_ptr<CublasLtContext> handle_;
};

// D = op(A) op(B), D [m, n], op(A) [m, k], op(B) [k, n], column after column, as cuBLAS has them: a
// row-major matrix is its transpose there. Types are float32 and bfloat16; sums are float32.
struct MatmulShape {
  uint64_t m = 1;
  uint64_t n = 1;
  uint64_t k = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;                // float32 [m], added to each column; of a float32 result alone
  bool relu = false;                // D = max(0, op(A) op(B) + bias)
  bool tf32 = false;                // tensor cores may round A and B to 10 bits
  uint32_t alignment = 16;          // of every operand, bytes
  DType factors = DType::kFloat32;  // of A and B
  DType result = DType::kFloat32;   // of D
};

struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const float* bias = nullptr;
  void* d = nullptr;
  void* workspace = nullptr;  // workspace_bytes() of it
};

// Used by one thread at a time.
class Matmul {
 public:
  // For the device of the handle. UNIMPLEMENTED: cuBLASLt has no algorithm for it. Other errors
  // have the exit code of a failed device.
  static absl::StatusOr<Matmul> Create(const CublasLtHandle& handle, const MatmulShape& shape);

  size_t workspace_bytes() const { return workspace_bytes_; }

  // Enqueues it. The device is current. Errors have the exit code of a failed device.
  absl::Status Enqueue(const MatmulOperands& operands, CUstream stream) const;

 private:
  explicit Matmul(const CublasLtHandle& handle) : handle_(handle) {}

  absl::Status TryEnqueue(const MatmulOperands& operands, CUstream stream) const;
  absl::Status Describe(const MatmulShape& shape);
  absl::Status ChooseAlgorithm(uint32_t alignment);
  absl::Status SetBias(const void* bias) const;

  CublasLtHandle handle_;
  bool bias_ = false;
  // null: not made
  std::shared_ptr<CublasLtMatmulDesc> matmul_;
  std::shared_ptr<CublasLtMatrixLayout> a_;
  std::shared_ptr<CublasLtMatrixLayout> b_;
  std::shared_ptr<CublasLtMatrixLayout> d_;
  CublasLtAlgorithm algorithm_ = {};
  size_t workspace_bytes_ = 0;
};

}  // namespace lockstep::worker::cuda
