#include "worker/device/cpu/cpu_device.h"

#include <omp.h>

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/tensor.h"
#include "worker/device/cpu/cpu_stream.h"

namespace lockstep::worker {
namespace {

constexpr std::align_val_t kAlignment{Tensor::kAlignment};

void Free(std::byte* memory) { ::operator delete(memory, kAlignment); }

}  // namespace

CpuDevice::CpuDevice(int threads) : threads_(threads) { LOCKSTEP_CHECK(threads >= 1); }

// OpenMP keeps this number per calling thread.
void CpuDevice::MakeCurrent() const { omp_set_num_threads(threads_); }

absl::StatusOr<DeviceBuffer> CpuDevice::Allocate(size_t bytes) {
  void* memory = ::operator new(std::max<size_t>(bytes, 1), kAlignment, std::nothrow);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no memory for ", bytes, " bytes. Remedy: a smaller batch per tower, or fewer towers"));
  }
  return DeviceBuffer(static_cast<std::byte*>(memory), &Free);
}

absl::StatusOr<std::unique_ptr<Stream>> CpuDevice::CreateStream(const StreamOptions& options) {
  if (options.background) return std::make_unique<BackgroundCpuStream>(this);
  return std::make_unique<LazyCpuStream>(this);
}

absl::StatusOr<std::unique_ptr<Event>> CpuDevice::CreateEvent() {
  return std::make_unique<CpuEvent>(this);
}

absl::Status CpuDevice::status() const {
  if (!has_failed()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return status_;
}

void CpuDevice::Fail(absl::Status error) {
  absl::MutexLock lock(&mutex_);
  if (!status_.ok()) return;
  status_ = std::move(error);
  has_failed_.store(true, std::memory_order_release);
}

}  // namespace lockstep::worker
