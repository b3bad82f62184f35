#include "worker/ops/dense.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/contest.h"
#include "tests/bench/gpu/gpu.h"
#include "tests/bench/gpu/rows.h"
#include "worker/device/cuda/cuda_stream.h"
#include "worker/ops/cuda/cublas/matmul.h"

namespace lockstep::bench::gpu {
namespace {

constexpr int64_t kDenseSize = 4096;
constexpr int kProducts = 5;
constexpr double kDenseTarget = 0.95;
constexpr double kOperations = 2.0 * kDenseSize * kDenseSize * kDenseSize;

struct Products {
  static absl::StatusOr<std::shared_ptr<Products>> Make(worker::Precision precision) {
    LOCKSTEP_ASSIGN_OR_RETURN(Gpu gpu, Gpu::Open(precision));
    auto products = std::make_shared<Products>(std::move(gpu));
    worker::Device& device = *products->gpu.device();
    const DType type = products->gpu.ops().activations();
    constexpr int64_t kElements = kDenseSize * kDenseSize;
    for (worker::DeviceBuffer* const matrix :
         {&products->x, &products->y, &products->rounded_kernel}) {
      LOCKSTEP_ASSIGN_OR_RETURN(*matrix, products->gpu.RandomNumbers(kElements, type));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(products->kernel, products->gpu.RandomNumbers(kElements));
    const worker::DenseOptions options{
        {.batch = kDenseSize, .type = type}, kDenseSize, kDenseSize, /*bias=*/false};
    LOCKSTEP_ASSIGN_OR_RETURN(products->op,
                              products->gpu.ops().Make(products->gpu.context(), options));
    LOCKSTEP_ASSIGN_OR_RETURN(const auto* const library, worker::cuda::SharedCublasLt());
    LOCKSTEP_ASSIGN_OR_RETURN(const auto handle,
                              worker::cuda::CublasLtHandle::Create(
                                  static_cast<const worker::cuda::CudaDevice*>(&device), library));
    LOCKSTEP_ASSIGN_OR_RETURN(
        products->bare,
        worker::cuda::Matmul::Create(handle, {.m = kDenseSize,
                                              .n = kDenseSize,
                                              .k = kDenseSize,
                                              .tf32 = precision == worker::Precision::kTf32,
                                              .factors = type,
                                              .result = type}));
    LOCKSTEP_ASSIGN_OR_RETURN(products->workspace,
                              device.Allocate(products->bare->workspace_bytes()));
    return products;
  }

  explicit Products(Gpu gpu) : gpu(std::move(gpu)) {}

  absl::Status RunOp() {
    const Shape shape({kDenseSize, kDenseSize});
    const DType type = gpu.ops().activations();
    const TensorView input{type, shape, x.get()};
    const TensorView variable{DType::kFloat32, shape, kernel.get()};
    return op->Forward({.mode = worker::Mode::kInference,
                        .inputs = {&input, 1},
                        .variables = {&variable, 1},
                        .output = {type, shape, y.get()}},
                       gpu.stream());
  }
  absl::Status RunBare() {
    return bare->Enqueue(
        {.a = rounded_kernel.get(), .b = x.get(), .d = y.get(), .workspace = workspace.get()},
        static_cast<worker::cuda::CudaStream*>(gpu.stream())->get());
  }

  const Gpu gpu;
  worker::DeviceBuffer x, kernel, rounded_kernel, y, workspace;
  std::unique_ptr<worker::Op> op;
  std::optional<worker::cuda::Matmul> bare;
};

// Adds the row `name`: the op beside the library, in this precision.
void AddDense(const std::string& name, worker::Precision precision, Contest* contest) {
  const auto products = std::make_shared<std::shared_ptr<Products>>();
  const auto rate_of = [products, precision](absl::Status (Products::*run)()) -> Measure {
    return [products, precision, run]() -> absl::StatusOr<double> {
      if (*products == nullptr) {
        LOCKSTEP_ASSIGN_OR_RETURN(*products, Products::Make(precision));
      }
      Products& made = **products;
      LOCKSTEP_ASSIGN_OR_RETURN(const double seconds,
                                made.gpu.SecondsOf(kProducts, [&] { return (made.*run)(); }));
      return kOperations / seconds / 1e12;
    };
  };
  const std::string bare = absl::StrCat(name, "/bare");
  contest->sides.push_back({name, absl::StrCat("the op dense, ", name), rate_of(&Products::RunOp)});
  contest->sides.push_back({bare, "cuBLASLt alone", rate_of(&Products::RunBare)});
  contest->comparisons.push_back({name, name, bare, kDenseTarget});
}

Contest Dense(const BenchOptions&) {
  Contest contest{.unit = "TFLOP/s", .higher_is_better = true};
  contest.note = "4096 x 4096 x 4096";
  AddDense("gpu_dense", worker::Precision::kFloat32, &contest);
  AddDense("gpu_dense_tf32", worker::Precision::kTf32, &contest);
  AddDense("gpu_dense_bf16", worker::Precision::kBfloat16, &contest);
  return contest;
}

}  // namespace

RowGroup DenseRows() { return AsGroup(Dense); }

}  // namespace lockstep::bench::gpu
