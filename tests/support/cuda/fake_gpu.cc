#include "tests/support/cuda/fake_gpu.h"

#include "tests/support/cuda/fake_cublas_lt.h"
#include "tests/support/cuda/fake_cudnn.h"
#include "worker/device/cuda/driver.h"

namespace lockstep::test {
namespace {

struct FakeGpu {
  std::shared_ptr<FakeDriver> fake;
  std::unique_ptr<worker::cuda::Driver> driver;
  std::unique_ptr<worker::cuda::CudaDevice> device;
};

// Used by the thread of the test.
std::weak_ptr<FakeDriver> existing_driver;

}  // namespace

std::shared_ptr<worker::cuda::CudaDevice> MakeFakeGpu(uint64_t seed) {
  auto gpu = std::make_shared<FakeGpu>();
  gpu->fake = existing_driver.lock();
  if (gpu->fake == nullptr) gpu->fake = std::make_shared<FakeDriver>(seed);
  existing_driver = gpu->fake;
  worker::cuda::SetCublasLtForTesting(&FakeCublasLt());
  static FakeCudnn cudnn({FakeEngine{.workspace = 64}});
  worker::cuda::SetCudnnForTesting(&FakeCudnn::library());
  gpu->driver = *worker::cuda::Driver::Create(FakeDriver::functions(), 0);
  gpu->device = *worker::cuda::CudaDevice::Create(gpu->driver.get(), 0);
  worker::cuda::CudaDevice* const device = gpu->device.get();
  return {std::move(gpu), device};
}

}  // namespace lockstep::test
