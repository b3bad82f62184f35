#include "worker/backend/backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/cuda_devices.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/cuda/cublas/cublas_lt_library.h"
#include "worker/ops/cuda/cudnn/cudnn_library.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker {
namespace {

// A GPU whose kernels are loaded once, so that one that has no code here is refused at the start.
absl::StatusOr<std::shared_ptr<Device>> OpenGpu(int ordinal, const cuda::Driver* driver) {
  if (ordinal >= driver->device_count()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--device=cuda:", ordinal, ": this process sees ",
                     CountText(static_cast<uint64_t>(driver->device_count()), "GPU"),
                     ", numbered from 0. Remedy: another number, or another CUDA_VISIBLE_DEVICES"));
  }
  LOCKSTEP_RETURN_IF_ERROR(cuda::SharedCublasLt().status());
  LOCKSTEP_RETURN_IF_ERROR(cuda::SharedCudnn().status());
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaDevice> device,
                            cuda::CudaDevice::Create(driver, ordinal));
  LOCKSTEP_RETURN_IF_ERROR(cuda::Ops().CreateContext(device.get()).status());
  return device;
}

}  // namespace

Backend::Backend(std::shared_ptr<Device> gpu, std::string description, bool is_automatic)
    : gpu_(std::move(gpu)),
      name_(gpu_->name()),
      description_(std::move(description)),
      is_automatic_(is_automatic) {}

const OpTable& Backend::ops(Precision precision) const {
  return gpu_ != nullptr ? cuda::Ops(precision) : cpu::Ops();
}

absl::StatusOr<Backend> Backend::Open(const DeviceChoice& choice,
                                      const absl::StatusOr<const cuda::Driver*>& driver) {
  if (choice.kind == DeviceChoice::Kind::kCpu) return Backend();
  absl::Status problem = driver.status();
  if (driver.ok()) {
    absl::StatusOr<std::shared_ptr<Device>> gpu = OpenGpu(choice.ordinal, *driver);
    if (gpu.ok()) {
      return Backend(
          *gpu,
          absl::StrCat((*gpu)->name(), " (", cuda::DescribeDevice(**driver, choice.ordinal), ")"),
          choice.kind == DeviceChoice::Kind::kAuto);
    }
    problem = std::move(gpu).status();
  }
  if (choice.kind == DeviceChoice::Kind::kAuto) {
    Backend cpu;
    cpu.problem_ = std::string(problem.message());
    return cpu;
  }
  return WithExitCode(
      absl::Status(problem.code(), absl::StrCat(problem.message(), "; or --device=cpu")),
      ExitCodeFor(problem));
}

std::shared_ptr<Device> Backend::MakeDevice(int threads) const {
  if (gpu_ != nullptr) return gpu_;
  return std::make_shared<CpuDevice>(threads);
}

}  // namespace lockstep::worker
