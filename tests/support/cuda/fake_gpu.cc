#include "tests/support/cuda/fake_gpu.h"

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
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

// Under which drivers are made and end: there is one at a time.
absl::Mutex mutex(absl::kConstInit);
std::weak_ptr<FakeDriver> existing_driver ABSL_GUARDED_BY(mutex);

}  // namespace

std::shared_ptr<worker::cuda::CudaDevice> MakeFakeGpu(uint64_t seed, int ordinal) {
  absl::MutexLock lock(&mutex);
  const std::shared_ptr<FakeGpu> gpu(new FakeGpu, [](FakeGpu* unused) {
    absl::MutexLock deletion(&mutex);
    delete unused;
  });
  gpu->fake = existing_driver.lock();
  if (gpu->fake == nullptr) gpu->fake = std::make_shared<FakeDriver>(seed);
  existing_driver = gpu->fake;
  gpu->fake->SetDeviceCount(std::max(gpu->fake->device_count(), ordinal + 1));
  worker::cuda::SetCublasLtForTesting(&FakeCublasLt());
  static FakeCudnn cudnn({FakeEngine{.workspace = 64}});
  worker::cuda::SetCudnnForTesting(&FakeCudnn::library());
  gpu->driver = *worker::cuda::Driver::Create(FakeDriver::functions(), 0);
  gpu->device = *worker::cuda::CudaDevice::Create(gpu->driver.get(), ordinal);
  worker::cuda::CudaDevice* const device = gpu->device.get();
  return {gpu, device};
}

}  // namespace lockstep::test
