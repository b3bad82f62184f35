// Our declarations of cuBLASLt's interface against cublasLt.h, and against the library itself,
// which can be opened without a GPU.
#include <cublasLt.h>

#include <catch2/catch.hpp>

#include "tests/support/cuda/same_call.h"
#include "worker/ops/cuda/cublas/cublas_lt_library.h"

namespace lockstep::worker::cuda {
namespace {

#define LOCKSTEP_COMPARE(name, symbol, value) static_assert(name == static_cast<int>(symbol));
LOCKSTEP_CUBLAS_LT_CONSTANTS(LOCKSTEP_COMPARE)
#undef LOCKSTEP_COMPARE

static_assert(kCublasSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(kCublasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(sizeof(CublasLtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(CublasLtHeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(CublasLtHeuristicResult, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(CublasLtHeuristicResult, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

#define LOCKSTEP_COMPARE(name, result, symbol, parameters)                                  \
  static_assert(test::SameCall(decltype(CublasLtFunctions::name){}, decltype(&::symbol){}), \
                #symbol " has other parameters in cublasLt.h");
LOCKSTEP_CUBLAS_LT_FUNCTIONS(LOCKSTEP_COMPARE)
#undef LOCKSTEP_COMPARE

TEST_CASE("the toolkit's cuBLASLt has every function that is used") {
  const auto library = CublasLtLibrary::Open(LOCKSTEP_CUBLAS_LT);
  INFO(library.status().ToString());
  REQUIRE(library.ok());
  CHECK(library->ToStatus(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul") ==
        absl::UnimplementedError("cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED"));
}

}  // namespace
}  // namespace lockstep::worker::cuda
