#include "worker/backend/backend.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/cuda_devices.h"
#include "worker/device/cuda/nccl_communicator.h"
#include "worker/device/cuda/nccl_library.h"
#include "worker/device/cuda/nvml_library.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/cuda/cublas/cublas_lt_library.h"
#include "worker/ops/cuda/cublas/matmul.h"
#include "worker/ops/cuda/cudnn/convolution.h"
#include "worker/ops/cuda/cudnn/cudnn_library.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker {
namespace {

// Makes once what each op needs, so that a GPU that cannot do it is refused at the start.
absl::Status TryGpu(cuda::CudaDevice* gpu) {
  LOCKSTEP_ASSIGN_OR_RETURN(const cuda::CublasLtLibrary* const cublas, cuda::SharedCublasLt());
  LOCKSTEP_ASSIGN_OR_RETURN(const cuda::CudnnLibrary* const cudnn, cuda::SharedCudnn());
  LOCKSTEP_RETURN_IF_ERROR(cuda::Ops().CreateContext(gpu).status());
  LOCKSTEP_RETURN_IF_ERROR(cuda::CublasLtHandle::Create(gpu, cublas).status());
  LOCKSTEP_RETURN_IF_ERROR(cuda::CudnnHandle::Create(gpu, cudnn).status());
  return gpu->status();
}

// Before a worker joins, what a GPU that works refuses is no failure of it. The next start meets
// it, too, unless others hold the GPU, which may end.
absl::Status AtStart(const absl::Status& error) {
  if (absl::IsFailedPrecondition(error)) return WithExitCode(error, ExitCode::kBadConfiguration);
  const bool is_held =
      absl::IsResourceExhausted(error) && ExitCodeFor(error) == ExitCode::kDeviceFailed;
  return is_held ? WithExitCode(error, ExitCode::kPeersLost) : error;
}

absl::StatusOr<std::unique_ptr<cuda::CudaDevice>> OpenGpu(const cuda::Driver& driver, int ordinal,
                                                          const cuda::CudaDeviceOptions& options) {
  if (ordinal >= driver.device_count()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--device=cuda:", ordinal, ": this process sees ",
                     CountText(static_cast<uint64_t>(driver.device_count()), "GPU"),
                     ", numbered from 0. Remedy: another number, or another CUDA_VISIBLE_DEVICES"));
  }
  auto device = cuda::CudaDevice::Create(&driver, ordinal, options);
  const absl::Status tried = device.ok() ? TryGpu(device->get()) : device.status();
  if (!tried.ok()) return AtStart(tried);
  return device;
}

// A thread that waits for a GPU that has failed, or for a call of a library, cannot be ended alone.
[[noreturn]] void EndProcess(const std::string& why) {
  log::Error(absl::StrCat("this process is ended: ", why));
  std::_Exit(static_cast<int>(ExitCode::kDeviceFailed));
}

// So that `reader` copies from `gpu` over their link.
void Connect(cuda::CudaDevice& reader, const cuda::CudaDevice& gpu) {
  const absl::Status direct = reader.EnablePeerAccess(gpu);
  if (direct.ok()) return;
  log::Info(absl::StrCat(reader.name(), " copies from ", gpu.name(),
                         " through the host: ", direct.message()));
}

std::vector<int> OrdinalsOf(const DeviceChoice& choice, const cuda::Driver& driver) {
  if (!choice.ordinals.empty()) return choice.ordinals;
  std::vector<int> all(static_cast<size_t>(driver.device_count()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

absl::Status Backend::OpenGpus(const DeviceChoice& choice, const cuda::Driver& driver) {
  LOCKSTEP_RETURN_IF_ERROR(cuda::SharedCublasLt().status());
  LOCKSTEP_RETURN_IF_ERROR(cuda::SharedCudnn().status());
  driver_ = &driver;
  options_ = choice.options;
  std::vector<std::string> names;
  std::vector<std::string> descriptions;
  for (const int ordinal : OrdinalsOf(choice, driver)) {
    auto gpu = OpenGpu(driver, ordinal, options_);
    if (!gpu.ok()) {
      if (choice.kind != DeviceChoice::Kind::kAuto) return gpu.status();
      absl::StrAppend(&problem_, problem_.empty() ? "" : "; ", gpu.status().message());
      continue;
    }
    names.push_back((*gpu)->name());
    descriptions.push_back(
        absl::StrCat(names.back(), " (", cuda::DescribeDevice(driver, ordinal), ")"));
    if (first_ == nullptr) {
      first_ = *std::move(gpu);
    } else {
      others_.push_back(ordinal);
    }
  }
  if (first_ == nullptr) return absl::FailedPreconditionError(problem_);
  name_ = absl::StrJoin(names, ",");
  description_ = absl::StrJoin(descriptions, ", ");
  return absl::OkStatus();
}

const OpTable& Backend::ops(Precision precision) const {
  return first_ == nullptr ? cpu::Ops() : cuda::Ops(precision);
}

absl::StatusOr<Backend> Backend::Open(const DeviceChoice& choice,
                                      const absl::StatusOr<const cuda::Driver*>& driver) {
  Backend backend;
  if (choice.kind == DeviceChoice::Kind::kCpu) return backend;
  backend.is_automatic_ = choice.kind == DeviceChoice::Kind::kAuto;
  absl::Status opened = driver.status();
  if (driver.ok()) opened = backend.OpenGpus(choice, **driver);
  if (opened.ok()) return backend;
  if (backend.is_automatic_) {
    Backend cpu;
    cpu.problem_ = std::string(opened.message());
    return cpu;
  }
  return WithExitCode(
      absl::Status(opened.code(), absl::StrCat(opened.message(), "; or --device=cpu")),
      ExitCodeFor(opened));
}

std::shared_ptr<Device> Backend::MakeDevice(int threads) const {
  if (first_ != nullptr) return first_;
  return std::make_shared<CpuDevice>(threads);
}

absl::StatusOr<std::vector<std::shared_ptr<Device>>> Backend::MakeDevices(int threads,
                                                                          size_t most) const {
  if (first_ == nullptr) return std::vector{MakeDevice(threads)};
  std::vector<std::shared_ptr<cuda::CudaDevice>> gpus = {first_};
  for (const int ordinal : others_) {
    if (gpus.size() >= most) break;
    // OpenGpus has tried its kernels.
    LOCKSTEP_ASSIGN_OR_RETURN(gpus.emplace_back(),
                              cuda::CudaDevice::Create(driver_, ordinal, options_));
  }
  // The first reduces the gradients of the others.
  for (const auto& gpu : std::span(gpus).subspan(1)) Connect(*gpus.front(), *gpu);
  const absl::StatusOr<const cuda::NvmlLibrary*> nvml = cuda::SharedNvml();
  for (const auto& gpu : gpus) {
    gpu->Watch(nvml.ok() ? *nvml : nullptr, [name = gpu->name()] {
      EndProcess(absl::StrCat(name, " has failed, and the process still waits for it"));
    });
  }
  return std::vector<std::shared_ptr<Device>>(gpus.begin(), gpus.end());
}

void Backend::ConnectBehind(const TowerDevices& gpus, size_t reader) const {
  for (size_t gpu = reader + 1; gpu < gpus.size(); ++gpu) {
    Connect(static_cast<cuda::CudaDevice&>(*gpus.of(reader)),
            static_cast<cuda::CudaDevice&>(*gpus.of(gpu)));
  }
}

absl::StatusOr<std::unique_ptr<Communicator>> Backend::MakeNccl(const TowerDevices& gpus) const {
  LOCKSTEP_CHECK(first_ != nullptr);
  LOCKSTEP_ASSIGN_OR_RETURN(const cuda::NcclLibrary* const nccl, cuda::SharedNccl());
  std::vector<cuda::CudaDevice*> all;
  for (Device* const gpu : gpus.all()) all.push_back(static_cast<cuda::CudaDevice*>(gpu));
  return cuda::NcclCommunicator::Create(nccl, std::move(all), {.on_stuck = EndProcess});
}

}  // namespace lockstep::worker
