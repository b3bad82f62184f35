#include "worker/device/cpu/cpu_device.h"

#include <omp.h>

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/tensor.h"

namespace lockstep::worker {
namespace {

constexpr std::align_val_t kAlignment{Tensor::kAlignment};

void Free(std::byte* memory) { ::operator delete(memory, kAlignment); }

}  // namespace

CpuDevice::CpuDevice(int threads) : threads_(threads) { LOCKSTEP_CHECK(threads >= 1); }

std::string CpuDevice::name() const {
  return absl::StrCat("cpu (", threads_, threads_ == 1 ? " thread)" : " threads)");
}

// OpenMP keeps this number per calling thread.
void CpuDevice::MakeCurrent() const { omp_set_num_threads(threads_); }

absl::StatusOr<DeviceMemory> CpuDevice::Allocate(size_t bytes) const {
  void* memory = ::operator new(std::max<size_t>(bytes, 1), kAlignment, std::nothrow);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes of activations and gradients. Remedy: a ",
                     "smaller batch per tower, or fewer towers"));
  }
  return DeviceMemory(static_cast<std::byte*>(memory), &Free);
}

}  // namespace lockstep::worker
