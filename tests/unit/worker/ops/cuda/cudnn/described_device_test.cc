// cuDNN itself plans convolutions for a GPU that is described to it and not there.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "worker/ops/cuda/cudnn/convolution_plan.h"

// cuDNN and cuBLASLt keep memory until the process ends, which is not ours to free.
extern "C" int __lsan_is_turned_off() { return 1; }

namespace lockstep::worker::cuda {
namespace {

struct Card {
  const char* name;
  uint64_t memory_bytes;
  const char* properties;  // what cuDNN asks the driver for
};

// One of each compute capability that kernels are compiled for, and the one with the most memory.
constexpr Card kCards[] = {{"A100", 42'949'672'960, R"({
  "deviceVer": 800, "driverVer": 13000, "cudaDeviceId": 0, "deviceName": "NVIDIA A100-SXM4-40GB",
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "multiProcessorCount": 108, "warpSize": 32,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 166912,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "smClockRateKHz": 1410000, "memClockRateKHz": 1215000,
  "l2CacheSize": 41943040, "totalGlobalMem": 42949672960})"},
                           {"H100", 85'899'345'920, R"({
  "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "deviceName": "NVIDIA H100 80GB HBM3",
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
  "l2CacheSize": 52428800, "totalGlobalMem": 85899345920})"},
                           {"H200", 150'323'855'360, R"({
  "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "deviceName": "NVIDIA H200",
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
  "l2CacheSize": 62914560, "totalGlobalMem": 150323855360})"}};

// In float32 without tensor cores input and output are copied into another layout: 588 MiB for the
// largest convolution of ResNet-50 at this batch, twice as much at the double.
constexpr int64_t kBatchOfLeastWorkspace = 128;
constexpr int64_t kLeastWorkspace = int64_t{640} << 20;

// Padding that keeps the size, by the stride; an odd rest comes after the image.
Conv2DOptions Same(int64_t batch, ImageShape input, int64_t filters, int64_t extent,
                   int64_t stride) {
  Conv2DOptions options;
  options.batch = batch;
  options.input = input;
  options.output = {(input.height + stride - 1) / stride, (input.width + stride - 1) / stride,
                    filters};
  options.window.extent = {extent, extent};
  options.window.stride = {stride, stride};
  const auto padding = [&](int64_t in, int64_t out) {
    return std::max<int64_t>((out - 1) * stride + extent - in, 0);
  };
  const int64_t rows = padding(input.height, options.output.height);
  const int64_t columns = padding(input.width, options.output.width);
  options.window.pad_before = {rows / 2, columns / 2};
  options.window.pad_after = {rows - rows / 2, columns - columns / 2};
  return options;
}

// Those of the examples digits, fashion and residual.
std::vector<Conv2DOptions> Examples() {
  return {Same(64, {8, 8, 1}, 32, 3, 1),   Same(64, {8, 8, 32}, 64, 3, 1),
          Same(64, {28, 28, 1}, 16, 3, 1), Same(64, {14, 14, 16}, 32, 3, 1),
          Same(64, {8, 8, 1}, 16, 3, 1),   Same(64, {8, 8, 16}, 16, 3, 1),
          Same(64, {8, 8, 16}, 32, 3, 2),  Same(64, {4, 4, 32}, 32, 3, 1),
          Same(64, {8, 8, 16}, 32, 1, 2)};
}

std::vector<Conv2DOptions> ResNet50(int64_t batch) {
  std::vector<Conv2DOptions> all = {Same(batch, {224, 224, 3}, 64, 7, 2)};
  int64_t channels = 64;
  int64_t size = 56;
  for (const int64_t width : {64, 128, 256, 512}) {
    const int64_t stride = width == 64 ? 1 : 2;
    // The first block of a stage, and the ones after it.
    all.push_back(Same(batch, {size, size, channels}, width, 1, 1));
    all.push_back(Same(batch, {size, size, width}, width, 3, stride));
    all.push_back(Same(batch, {size, size, channels}, 4 * width, 1, stride));
    size /= stride;
    channels = 4 * width;
    all.push_back(Same(batch, {size, size, width}, channels, 1, 1));
    all.push_back(Same(batch, {size, size, channels}, width, 1, 1));
    all.push_back(Same(batch, {size, size, width}, width, 3, 1));
  }
  return all;
}

// Each has a plan with at most `most_workspace` bytes.
void CheckPlans(const CudnnLibrary& library, const BackendDescriptor& device,
                const std::vector<Conv2DOptions>& convolutions, int64_t most_workspace) {
  for (const Conv2DOptions& options : convolutions) {
    for (const ConvolutionPass pass : {ConvolutionPass::kForward, ConvolutionPass::kInputGradient,
                                       ConvolutionPass::kKernelGradient}) {
      for (const Precision precision :
           {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16}) {
        INFO(DescribeConvolution(options)
             << ", extent " << options.window.extent[0] << ", pass " << static_cast<int>(pass)
             << ", precision " << static_cast<int>(precision));
        const auto plans = PlanConvolution(&library, {.described = &device},
                                           {options, pass, precision, most_workspace});
        INFO(plans.status().ToString());
        REQUIRE(plans.ok());
        REQUIRE(plans->size() == 1);
        CHECK(plans->front().workspace_bytes <= most_workspace);
        CHECK(plans->front().configurations > 0);
        CHECK(plans->front().engine >= 0);
      }
    }
  }
}

// `batch`: of ResNet-50.
void CheckOnEachCard(int64_t batch, const std::vector<Conv2DOptions>& convolutions) {
  const auto library = CudnnLibrary::Open(LOCKSTEP_CUDNN);
  REQUIRE(library.ok());
  for (const Card& card : kCards) {
    INFO(card.name);
    BackendDescriptor device(&*library, kDevicePropertiesDescriptor);
    device.Set(kDevicePropertiesJson, std::string(card.properties));
    REQUIRE(device.Finalize().ok());
    CheckPlans(*library, device, convolutions,
               batch > kBatchOfLeastWorkspace ? MostConvolutionWorkspace(card.memory_bytes)
                                              : kLeastWorkspace);
  }
}

TEST_CASE("every convolution of the examples has a deterministic plan in each precision") {
  CheckOnEachCard(64, Examples());
}

TEST_CASE("every convolution of ResNet-50 has a deterministic plan in each precision") {
  for (const int64_t batch : {kBatchOfLeastWorkspace, int64_t{256}}) {
    CheckOnEachCard(batch, ResNet50(batch));
  }
}

TEST_CASE("a device of which properties are missing is refused with cuDNN's words") {
  const auto library = CudnnLibrary::Open(LOCKSTEP_CUDNN);
  REQUIRE(library.ok());
  BackendDescriptor device(&*library, kDevicePropertiesDescriptor);
  device.Set(kDevicePropertiesJson, std::string("{}"));
  const absl::Status refused = device.Finalize();
  CHECK_THAT(std::string(refused.message()), Catch::Contains("CUDNN_STATUS_"));
}

}  // namespace
}  // namespace lockstep::worker::cuda
