// Products by a cuBLASLt that the host imitates.
#include "worker/ops/cuda/cublas/matmul.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/exit_code.h"
#include "tests/support/cuda/fake_cublas_lt.h"
#include "tests/support/cuda/fake_gpu.h"
#include "worker/device/cuda/cuda_stream.h"

namespace lockstep::worker::cuda {
namespace {

// `left` [2, 3] and `right` [3, 2], column after column or, transposed, row after row.
std::vector<float> Product(const MatmulShape& shape) {
  const auto device = test::MakeFakeGpu(1);
  const std::vector<float> left = shape.transpose_a ? std::vector<float>{1, 2, 3, 4, 5, 6}
                                                    : std::vector<float>{1, 4, 2, 5, 3, 6};
  const std::vector<float> right = shape.transpose_b ? std::vector<float>{1, -1, 0, 2, 1, 0}
                                                     : std::vector<float>{1, 0, 1, -1, 2, 0};
  const std::vector<float> bias = {10, -20};
  const auto handle = CublasLtHandle::Create(device.get(), &test::FakeCublasLt());
  REQUIRE(handle.ok());
  const auto matmul = Matmul::Create(*handle, shape);
  REQUIRE(matmul.ok());
  const auto stream = *device->CreateStream({});
  const auto event = *device->CreateEvent();
  const auto upload = [&](const std::vector<float>& values) {
    DeviceBuffer buffer = *device->Allocate(values.size() * sizeof(float));
    stream->CopyToDevice(buffer.get(), values.data(), values.size() * sizeof(float));
    return buffer;
  };
  const auto floats = [](const DeviceBuffer& buffer) {
    return reinterpret_cast<float*>(buffer.get());
  };
  const DeviceBuffer a = upload(left);
  const DeviceBuffer b = upload(right);
  const DeviceBuffer added = upload(bias);
  const DeviceBuffer d = *device->Allocate(4 * sizeof(float));
  const DeviceBuffer workspace = *device->Allocate(matmul->workspace_bytes());
  REQUIRE(matmul
              ->Enqueue({.a = floats(a),
                         .b = floats(b),
                         .bias = floats(added),
                         .d = floats(d),
                         .workspace = workspace.get()},
                        static_cast<CudaStream*>(stream.get())->get())
              .ok());
  std::vector<float> product(4);
  stream->CopyToHost(product.data(), d.get(), 4 * sizeof(float));
  stream->Record(event.get());
  REQUIRE(event->Wait().ok());
  return product;
}

TEST_CASE("products are those of the matrices, transposed or not") {
  // [1 2 3; 4 5 6] [1 -1; 0 2; 1 0] = [4 3; 10 6]
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      CAPTURE(transpose_a, transpose_b);
      CHECK(Product({2, 2, 3, transpose_a, transpose_b}) == std::vector<float>{4, 10, 3, 6});
    }
  }
}

TEST_CASE("a bias is added to each column, and what is negative then becomes zero") {
  CHECK(Product({.m = 2, .n = 2, .k = 3, .bias = true}) == std::vector<float>{14, -10, 13, -14});
  CHECK(Product({.m = 2, .n = 2, .k = 3, .bias = true, .relu = true}) ==
        std::vector<float>{14, 0, 13, 0});
}

TEST_CASE("a product leaves nothing of cuBLASLt behind") {
  const auto device = test::MakeFakeGpu(1);
  const int64_t before = test::LiveCublasLtObjects();
  {
    const auto matmul = Matmul::Create(*CublasLtHandle::Create(device.get(), &test::FakeCublasLt()),
                                       {.m = 2, .n = 3, .k = 4});
    REQUIRE(matmul.ok());
    CHECK(test::LiveCublasLtObjects() > before);
  }
  CHECK(test::LiveCublasLtObjects() == before);
}

TEST_CASE("a shape for which cuBLASLt has no algorithm is named") {
  const auto device = test::MakeFakeGpu(1);
  CublasLtFunctions functions = *test::FakeCublasLt().operator->().operator->();
  functions.AlgoGetHeuristic = [](CublasLtContext*, CublasLtMatmulDesc*, CublasLtMatrixLayout*,
                                  CublasLtMatrixLayout*, CublasLtMatrixLayout*,
                                  CublasLtMatrixLayout*, CublasLtPreference*, int,
                                  CublasLtHeuristicResult*, int* count) {
    *count = 0;
    return kCublasSuccess;
  };
  const CublasLtLibrary library(functions);
  CHECK(Matmul::Create(*CublasLtHandle::Create(device.get(), &library), {.m = 2, .n = 3, .k = 4})
            .status() ==
        absl::UnimplementedError("cuBLASLt has no algorithm, of a product [2, 4] [4, 3]"));
}

// What the calls of a product's making return; one of them, as the test has it.
CublasStatus refusal = kCublasSuccess;

TEST_CASE("whichever call fails while a product is made, what it says decides about the device") {
  const auto device = test::MakeFakeGpu(1);
  CublasLtFunctions functions = *test::FakeCublasLt().operator->().operator->();
  SECTION("the description") {
    functions.MatmulDescCreate = [](CublasLtMatmulDesc**, int, int) { return refusal; };
  }
  SECTION("its attributes") {
    functions.MatmulDescSetAttribute = [](CublasLtMatmulDesc*, int, const void*, size_t) {
      return refusal;
    };
  }
  SECTION("the layouts") {
    functions.MatrixLayoutCreate = [](CublasLtMatrixLayout**, int, uint64_t, uint64_t, int64_t) {
      return refusal;
    };
  }
  SECTION("the preferences") {
    functions.PreferenceCreate = [](CublasLtPreference**) { return refusal; };
  }
  SECTION("what is preferred") {
    functions.PreferenceSetAttribute = [](CublasLtPreference*, int, const void*, size_t) {
      return refusal;
    };
  }
  SECTION("the algorithm") {
    functions.AlgoGetHeuristic = [](CublasLtContext*, CublasLtMatmulDesc*, CublasLtMatrixLayout*,
                                    CublasLtMatrixLayout*, CublasLtMatrixLayout*,
                                    CublasLtMatrixLayout*, CublasLtPreference*, int,
                                    CublasLtHeuristicResult*, int*) { return refusal; };
  }
  const CublasLtLibrary library(functions);
  const auto handle = CublasLtHandle::Create(device.get(), &library);
  const auto make = [&] { return Matmul::Create(*handle, {.m = 2, .n = 3, .k = 4}).status(); };
  refusal = test::kCublasInvalidValue;
  CHECK(absl::IsInternal(make()));
  CHECK(ExitCodeFor(make()) == ExitCode::kDeviceFailed);
  refusal = kCublasNotSupported;
  CHECK(absl::IsUnimplemented(make()));
}

TEST_CASE("whichever call fails while a product is enqueued, the device has failed") {
  const auto device = test::MakeFakeGpu(1);
  const auto stream = *device->CreateStream({});
  CublasLtFunctions functions = *test::FakeCublasLt().operator->().operator->();
  static bool is_made = false;
  is_made = false;
  SECTION("the bias") {
    functions.MatmulDescSetAttribute = [](CublasLtMatmulDesc*, int attribute, const void*, size_t) {
      return is_made && attribute == kMatmulBias ? test::kCublasInvalidValue : kCublasSuccess;
    };
  }
  SECTION("the product") {
    functions.Matmul = [](CublasLtContext*, CublasLtMatmulDesc*, const void*, const void*,
                          CublasLtMatrixLayout*, const void*, CublasLtMatrixLayout*, const void*,
                          const void*, CublasLtMatrixLayout*, void*, CublasLtMatrixLayout*,
                          const CublasLtAlgorithm*, void*, size_t,
                          CUstream) { return test::kCublasInvalidValue; };
  }
  const CublasLtLibrary library(functions);
  const auto matmul = Matmul::Create(*CublasLtHandle::Create(device.get(), &library),
                                     {.m = 2, .n = 3, .k = 4, .bias = true});
  REQUIRE(matmul.ok());
  is_made = true;
  const absl::Status failed = matmul->Enqueue({}, static_cast<CudaStream*>(stream.get())->get());
  REQUIRE_FALSE(failed.ok());
  CHECK(ExitCodeFor(failed) == ExitCode::kDeviceFailed);
}

TEST_CASE("a device on which cuBLASLt cannot start has failed") {
  const auto device = test::MakeFakeGpu(1);
  CublasLtFunctions functions = *test::FakeCublasLt().operator->().operator->();
  functions.Create = [](CublasLtContext**) { return test::kCublasInvalidValue; };
  const CublasLtLibrary library(functions);
  const absl::Status failed = CublasLtHandle::Create(device.get(), &library).status();
  CHECK_THAT(std::string(failed.message()), Catch::StartsWith("cuda:0: cublasLtCreate: "));
  CHECK(ExitCodeFor(failed) == ExitCode::kDeviceFailed);
}

TEST_CASE("a handle that another thread makes and destroys leaves a capture as it is") {
  const auto device = test::MakeFakeGpu(1);
  const auto stream = *device->CreateStream({});
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> has_begun = false;
    std::thread other;
    const auto graph = stream->Capture([&] {
      other = std::thread([&] {
        has_begun = true;
        CHECK(CublasLtHandle::Create(device.get(), &test::FakeCublasLt()).ok());
      });
      while (!has_begun) std::this_thread::yield();
      for (int i = 0; i < 100; ++i) std::this_thread::yield();  // would meet the capture
      return absl::OkStatus();
    });
    other.join();
    CHECK(graph != nullptr);
  }
}

TEST_CASE("a machine without cuBLASLt is told what to install") {
  const absl::Status missing = CublasLtLibrary::Open("libno_such_cublas.so.13").status();
  CHECK(absl::IsFailedPrecondition(missing));
  CHECK_THAT(std::string(missing.message()), Catch::Contains("Remedy: install cuBLAS of CUDA"));
  CHECK_THAT(std::string(CublasLtLibrary::Open("libm.so.6").status().message()),
             Catch::Contains("libm.so.6 has no cublasLtGetStatusName"));
}

}  // namespace
}  // namespace lockstep::worker::cuda
