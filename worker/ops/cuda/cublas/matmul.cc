#include "worker/ops/cuda/cublas/matmul.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {
namespace {

// What cuBLAS recommends for compute capability 9.0; more than the others need.
constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;

int EpilogueOf(const MatmulShape& shape) {
  if (shape.bias) return shape.relu ? kEpilogueReluBias : kEpilogueBias;
  return shape.relu ? kEpilogueRelu : kEpilogueDefault;
}

int TypeOf(DType type) { return type == DType::kBFloat16 ? kBfloat16 : kFloat32; }

// Object that `create` makes, with its destructor.
template <typename T, typename Destroy, typename CreateFunction>
absl::Status Make(const CublasLtLibrary* library, const char* call, Destroy destroy,
                  std::shared_ptr<T>* object, const CreateFunction& create) {
  T* made = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(library->ToStatus(create(&made), call));
  *object = std::shared_ptr<T>(made, [destroy](T* unused) { destroy(unused); });
  return absl::OkStatus();
}

}  // namespace

CublasLtHandle::CublasLtHandle(const CudaDevice* device, const CublasLtLibrary* library,
                               CublasLtContext* handle)
    : library_(library), handle_(handle, [device, library](CublasLtContext* unused) {
        device->CallOutsideCaptures([&] { (*library)->Destroy(unused); });
      }) {}

absl::StatusOr<CublasLtHandle> CublasLtHandle::Create(const CudaDevice* device,
                                                      const CublasLtLibrary* library) {
  CublasLtContext* handle = nullptr;
  absl::Status made;
  device->CallOutsideCaptures(
      [&] { made = library->ToStatus((*library)->Create(&handle), "cublasLtCreate"); });
  if (!made.ok()) {
    return device->Refused(absl::StatusCode::kFailedPrecondition, made,
                           absl::StrCat(", or install cuBLAS of CUDA ",
                                        VersionText(ToolkitVersion()), " and a driver for it"));
  }
  return CublasLtHandle(device, library, handle);
}

absl::StatusOr<Matmul> Matmul::Create(const CublasLtHandle& handle, const MatmulShape& shape) {
  Matmul matmul(handle);
  LOCKSTEP_RETURN_IF_ERROR(matmul.Describe(shape));
  if (absl::Status status = matmul.ChooseAlgorithm(shape.alignment); !status.ok()) {
    return WithMessage(status, absl::StrCat(status.message(), ", of a product [", shape.m, ", ",
                                            shape.k, "] [", shape.k, ", ", shape.n, "]"));
  }
  return matmul;
}

absl::Status Matmul::Describe(const MatmulShape& shape) {
  const CublasLtLibrary& cublas = handle_.library();
  bias_ = shape.bias;
  LOCKSTEP_RETURN_IF_ERROR(Make(&cublas, "cublasLtMatmulDescCreate", cublas->MatmulDescDestroy,
                                &matmul_, [&](CublasLtMatmulDesc** matmul) {
                                  return cublas->MatmulDescCreate(
                                      matmul, shape.tf32 ? kComputeTf32 : kComputeFloat32,
                                      kFloat32);
                                }));
  const auto set = [&](int attribute, int value) {
    return cublas.ToStatus(
        cublas->MatmulDescSetAttribute(matmul_.get(), attribute, &value, sizeof(value)),
        absl::StrCat("cublasLtMatmulDescSetAttribute of ", attribute));
  };
  if (shape.transpose_a) LOCKSTEP_RETURN_IF_ERROR(set(kMatmulTransposeA, kOperationTranspose));
  if (shape.transpose_b) LOCKSTEP_RETURN_IF_ERROR(set(kMatmulTransposeB, kOperationTranspose));
  LOCKSTEP_RETURN_IF_ERROR(set(kMatmulEpilogue, EpilogueOf(shape)));
  const auto make_layout = [&](DType type, uint64_t rows, uint64_t columns, bool transpose,
                               std::shared_ptr<CublasLtMatrixLayout>* layout) {
    if (transpose) std::swap(rows, columns);
    return Make(&cublas, "cublasLtMatrixLayoutCreate", cublas->MatrixLayoutDestroy, layout,
                [&](CublasLtMatrixLayout** made) {
                  return cublas->MatrixLayoutCreate(made, TypeOf(type), rows, columns,
                                                    static_cast<int64_t>(rows));
                });
  };
  LOCKSTEP_RETURN_IF_ERROR(make_layout(shape.factors, shape.m, shape.k, shape.transpose_a, &a_));
  LOCKSTEP_RETURN_IF_ERROR(make_layout(shape.factors, shape.k, shape.n, shape.transpose_b, &b_));
  return make_layout(shape.result, shape.m, shape.n, false, &d_);
}

absl::Status Matmul::ChooseAlgorithm(uint32_t alignment) {
  const CublasLtLibrary& cublas = handle_.library();
  std::shared_ptr<CublasLtPreference> preference;
  LOCKSTEP_RETURN_IF_ERROR(
      Make(&cublas, "cublasLtMatmulPreferenceCreate", cublas->PreferenceDestroy, &preference,
           [&](CublasLtPreference** made) { return cublas->PreferenceCreate(made); }));
  const auto set = [&](int attribute, const auto& value) {
    return cublas.ToStatus(
        cublas->PreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
        absl::StrCat("cublasLtMatmulPreferenceSetAttribute of ", attribute));
  };
  LOCKSTEP_RETURN_IF_ERROR(set(kPreferenceMostWorkspace, kMostWorkspace));
  for (const int attribute : {kPreferenceAlignmentA, kPreferenceAlignmentB, kPreferenceAlignmentC,
                              kPreferenceAlignmentD}) {
    LOCKSTEP_RETURN_IF_ERROR(set(attribute, alignment));
  }
  // cuBLASLt takes the alignment of the bias from its address, which it does not read here.
  if (bias_) LOCKSTEP_RETURN_IF_ERROR(SetBias(reinterpret_cast<const void*>(uintptr_t{alignment})));
  CublasLtHeuristicResult result = {};
  int count = 0;
  LOCKSTEP_RETURN_IF_ERROR(cublas.ToStatus(
      cublas->AlgoGetHeuristic(handle_.get(), matmul_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                               preference.get(), 1, &result, &count),
      "cublasLtMatmulAlgoGetHeuristic"));
  if (count == 0) return absl::UnimplementedError("cuBLASLt has no algorithm");
  LOCKSTEP_RETURN_IF_ERROR(
      cublas.ToStatus(result.state, "cublasLtMatmulAlgoGetHeuristic, its first result"));
  algorithm_ = result.algorithm;
  workspace_bytes_ = result.workspace_bytes;
  return absl::OkStatus();
}

absl::Status Matmul::SetBias(const void* bias) const {
  const CublasLtLibrary& cublas = handle_.library();
  return cublas.ToStatus(
      cublas->MatmulDescSetAttribute(matmul_.get(), kMatmulBias, &bias, sizeof(bias)),
      "cublasLtMatmulDescSetAttribute of the bias");
}

absl::Status Matmul::Enqueue(const MatmulOperands& operands, CUstream stream) const {
  const absl::Status status = TryEnqueue(operands, stream);
  // Any of the calls may be the first to tell of a GPU that has failed.
  return status.ok() ? status : WithExitCode(status, ExitCode::kDeviceFailed);
}

absl::Status Matmul::TryEnqueue(const MatmulOperands& operands, CUstream stream) const {
  constexpr float kAlpha = 1;
  constexpr float kBeta = 0;
  const CublasLtLibrary& cublas = handle_.library();
  if (bias_) LOCKSTEP_RETURN_IF_ERROR(SetBias(operands.bias));
  return cublas.ToStatus(
      cublas->Matmul(handle_.get(), matmul_.get(), &kAlpha, operands.a, a_.get(), operands.b,
                     b_.get(), &kBeta, operands.d, d_.get(), operands.d, d_.get(), &algorithm_,
                     operands.workspace, workspace_bytes_, stream),
      "cublasLtMatmul");
}

}  // namespace lockstep::worker::cuda
