#include "worker/device/cuda/cuda_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "worker/device/cuda/cuda_stream.h"

namespace lockstep::worker::cuda {
namespace {

absl::Status OutOfMemory(const std::string& problem) {
  return WithExitCode(absl::ResourceExhaustedError(absl::StrCat(
                          problem, "a smaller batch per tower, or fewer towers on this GPU")),
                      ExitCode::kBadConfiguration);
}

constexpr char kFreeMemory[] =
    "end other processes on this GPU, which nvidia-smi lists, or take another GPU";

// Of a GPU that works, for a process that the driver admits no context of; empty: another error.
absl::string_view RemedyWithoutContext(CUresult result) {
  if (result >= kErrorMpsConnectionFailed && result <= kErrorMpsMaxConnectionsReached) {
    return "see the log of the Multi-Process Service, and how many clients it takes";
  }
  switch (result) {
    case kErrorOutOfMemory:
      return kFreeMemory;
    case kErrorDeviceUnavailable:
      return "give each worker a GPU of its own, or let several processes have it: nvidia-smi "
             "--compute-mode=DEFAULT";
    case kErrorSystemNotReady:
      return "start NVIDIA's Fabric Manager, without which GPUs behind an NVSwitch do not work";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(const Driver* driver, int ordinal,
                                                               const CudaDeviceOptions& options) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, ordinal, options));
  LOCKSTEP_RETURN_IF_ERROR(device->Open(ordinal));
  return device;
}

CudaDevice::CudaDevice(const Driver* driver, int ordinal, const CudaDeviceOptions& options)
    : driver_(driver),
      ordinal_(ordinal),
      options_(options),
      name_(absl::StrCat("cuda:", ordinal)) {}

absl::Status CudaDevice::Open(int ordinal) {
  LOCKSTEP_RETURN_IF_ERROR(Check(driver()->DeviceGet(&handle_, ordinal), "cuDeviceGet"));
  size_t total = 0;
  LOCKSTEP_RETURN_IF_ERROR(Check(driver()->DeviceTotalMem(&total, handle_), "cuDeviceTotalMem"));
  total_memory_ = total;
  LOCKSTEP_RETURN_IF_ERROR(RetainContext());
  MakeCurrent();
  return status();
}

absl::Status CudaDevice::RetainContext() {
  constexpr char kCall[] = "cuDevicePrimaryCtxRetain";
  const CUresult result = driver()->DevicePrimaryCtxRetain(&context_, handle_);
  const absl::string_view remedy = RemedyWithoutContext(result);
  if (remedy.empty()) return Check(result, kCall);
  // Without a context the driver does not tell how much is free.
  const std::string memory =
      result == kErrorOutOfMemory
          ? absl::StrCat(": too few of its ", total_memory_, " bytes are free")
          : "";
  const absl::Status refused = driver_->ToStatus(result, absl::StrCat(name_, ": ", kCall));
  return WithExitCode(
      absl::ResourceExhaustedError(absl::StrCat(refused.message(), memory, ". Remedy: ", remedy)),
      ExitCode::kDeviceFailed);
}

CudaDevice::~CudaDevice() {
  if (context_ != nullptr) driver()->DevicePrimaryCtxRelease(handle_);
}

void CudaDevice::Watch(const NvmlLibrary* nvml, std::function<void()> on_stuck) {
  if (monitor_ != nullptr) return;
  constexpr int kLongestId = 32;
  char id[kLongestId] = {};
  if (driver()->DeviceGetPciBusId(id, kLongestId, handle_) != kSuccess) nvml = nullptr;
  const auto fail = [this](const std::string& what) {
    FailWith(absl::InternalError(
        absl::StrCat(name_, ": ", what,
                     ". Remedy: see the kernel's log and nvidia-smi; the GPU may need a reset")));
  };
  monitor_ = std::make_unique<GpuMonitor>(
      nvml, id,
      GpuMonitorOptions{name_, fail, [this] { return has_failed(); }, std::move(on_stuck)});
}

void CudaDevice::Fail(CUresult result, absl::string_view call) const {
  FailWith(driver_->ToStatus(result, absl::StrCat(name_, ": ", call)));
}

void CudaDevice::FailWith(absl::Status error) const {
  absl::MutexLock lock(&mutex_);
  if (!status_.ok()) return;
  status_ = WithExitCode(std::move(error), ExitCode::kDeviceFailed);
  has_failed_.store(true, std::memory_order_release);
}

absl::Status CudaDevice::Check(CUresult result, absl::string_view call) const {
  if (result == kSuccess) return absl::OkStatus();
  Fail(result, call);
  return status();
}

absl::Status CudaDevice::status() const {
  if (!has_failed()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return status_;
}

void CudaDevice::MakeCurrent() const {
  const CUresult result = driver()->CtxSetCurrent(context_);
  if (result != kSuccess) Fail(result, "cuCtxSetCurrent");
}

void CudaDevice::WaitForAll() const {
  CallOutsideCaptures([this] { driver().waits().CtxSynchronize(); });
}

void CudaDevice::CallOutsideCaptures(absl::FunctionRef<void()> call) const {
  MakeCurrent();
  const absl::MutexLock lock(&capture_mutex_);
  call();
}

absl::StatusOr<bool> CudaDevice::HasLinkTo(const Device& other) const {
  const auto& peer = static_cast<const CudaDevice&>(other);
  if (peer.context_ == context_) return true;
  int can_access = 0;
  LOCKSTEP_RETURN_IF_ERROR(driver_->ToStatus(
      driver()->DeviceCanAccessPeer(&can_access, handle_, peer.handle_), "cuDeviceCanAccessPeer"));
  return can_access != 0;
}

absl::Status CudaDevice::EnablePeerAccess(const CudaDevice& peer) {
  if (peer.context_ == context_) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_link, HasLinkTo(peer));
  if (!has_link) return absl::UnavailableError("no direct link");
  MakeCurrent();
  const CUresult result = driver()->CtxEnablePeerAccess(peer.context_, /*flags=*/0);
  if (result == kErrorPeerAccessAlreadyEnabled) return absl::OkStatus();
  return driver_->ToStatus(result, "cuCtxEnablePeerAccess");
}

absl::StatusOr<DeviceBuffer> CudaDevice::Allocate(size_t bytes) {
  if (!Reserve(bytes)) {
    return OutOfMemory(
        absl::StrCat(name_, ": no memory for ", bytes, " bytes: ", allocated_.load(), " of the ",
                     options_.memory_limit,
                     " bytes of --gpu_memory_limit are in use. Remedy: a greater limit, "));
  }
  MakeCurrent();
  CUdeviceptr memory = 0;
  const CUresult result = driver()->MemAlloc(&memory, std::max<size_t>(bytes, 1));
  if (result != kSuccess) allocated_ -= bytes;
  if (result == kErrorOutOfMemory) return OutOfDeviceMemory(bytes);
  LOCKSTEP_RETURN_IF_ERROR(Check(result, absl::StrCat("cuMemAlloc of ", bytes, " bytes")));
  return DeviceBuffer(reinterpret_cast<std::byte*>(memory), [this, bytes](std::byte* address) {
    MakeCurrent();
    Check(driver()->MemFree(reinterpret_cast<CUdeviceptr>(address)), "cuMemFree").IgnoreError();
    allocated_ -= bytes;
  });
}

bool CudaDevice::Reserve(size_t bytes) {
  const uint64_t before = allocated_.fetch_add(bytes);
  if (options_.memory_limit == 0 || before + bytes <= options_.memory_limit) return true;
  allocated_ -= bytes;
  return false;
}

absl::StatusOr<std::string> CudaDevice::DescribeFreeMemory() const {
  size_t free = 0;
  size_t total = 0;
  LOCKSTEP_RETURN_IF_ERROR(Check(driver()->MemGetInfo(&free, &total), "cuMemGetInfo"));
  return absl::StrCat(free, " of its ", total, " bytes are free");
}

absl::Status CudaDevice::OutOfDeviceMemory(size_t bytes) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string free, DescribeFreeMemory());
  return OutOfMemory(
      absl::StrCat(name_, ": no memory for ", bytes, " bytes: ", free, ". Remedy: "));
}

absl::Status CudaDevice::Refused(absl::StatusCode code, const absl::Status& call,
                                 absl::string_view remedy) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string free, DescribeFreeMemory());
  return WithExitCode(absl::Status(code, absl::StrCat(name_, ": ", call.message(), ": ", free,
                                                      ". Remedy: ", kFreeMemory, remedy)),
                      ExitCode::kDeviceFailed);
}

DeviceUse CudaDevice::use() const {
  absl::MutexLock lock(&mutex_);
  return {.memory = allocated_,
          .memory_limit = options_.memory_limit > 0 ? options_.memory_limit : total_memory_,
          .to_device = to_device_,
          .to_host = to_host_,
          .training_steps = training_steps_,
          .graph_launches = graph_launches_,
          .graph_error = graph_error_,
          .utilization = monitor_ == nullptr ? std::nullopt : monitor_->utilization(),
          .convolutions = convolutions_};
}

void CudaDevice::CountConvolution(int64_t engine) {
  absl::MutexLock lock(&mutex_);
  ++convolutions_[engine];
}

void CudaDevice::ReportNoGraph(const absl::Status& why) const {
  {
    absl::MutexLock lock(&mutex_);
    if (!graph_error_.empty()) return;
    graph_error_ = std::string(why.message());
  }
  log::Warning(
      absl::StrCat(name_, ": steps run without CUDA graphs, kernel by kernel: ", why.message()));
}

void CudaDevice::ReportNoRing(const absl::Status& why) const {
  if (!can_pin_rings_.exchange(false, std::memory_order_relaxed)) return;
  log::Warning(absl::StrCat(name_,
                            " copies from memory that is not registered through its driver's "
                            "buffers, at a fraction of the speed: ",
                            why.message()));
}

absl::StatusOr<DeviceBuffer> CudaDevice::AllocatePinned(size_t bytes) {
  MakeCurrent();
  void* memory = nullptr;
  const CUresult result =
      driver()->MemHostAlloc(&memory, std::max<size_t>(bytes, 1), kMemHostPortable);
  // The host's refusal, of a container with a limit, say. The device is well.
  if (result == kErrorOutOfMemory || result == kErrorInvalidValue ||
      result == kErrorOperatingSystem || result == kErrorNotSupported) {
    const absl::Status error =
        driver_->ToStatus(result, absl::StrCat(name_, ": the host cannot pin ", bytes, " bytes"));
    return WithExitCode(
        absl::ResourceExhaustedError(absl::StrCat(
            error.message(),
            ". Remedy: free memory of the host, or a greater limit of locked memory (ulimit -l)")),
        ExitCode::kBadConfiguration);
  }
  LOCKSTEP_RETURN_IF_ERROR(Check(result, absl::StrCat("cuMemHostAlloc of ", bytes, " bytes")));
  driver_->pinned_memory()->Add(memory, bytes);
  return DeviceBuffer(static_cast<std::byte*>(memory), [this](std::byte* address) {
    driver_->pinned_memory()->Remove(address);
    MakeCurrent();
    Check(driver()->MemFreeHost(address), "cuMemFreeHost").IgnoreError();
  });
}

absl::StatusOr<HostRegistration> CudaDevice::RegisterHost(std::span<std::byte> memory) {
  return Register(memory.data(), memory.size(), kMemHostPortable);
}

absl::StatusOr<HostRegistration> CudaDevice::RegisterReadOnly(std::span<const std::byte> memory) {
  return Register(const_cast<std::byte*>(memory.data()), memory.size(),
                  kMemHostPortable | kMemHostReadOnly);
}

absl::StatusOr<HostRegistration> CudaDevice::Register(void* memory, size_t bytes,
                                                      unsigned int flags) {
  if (bytes == 0) return HostRegistration();
  MakeCurrent();
  const CUresult result = driver()->MemHostRegister(memory, bytes, flags);
  // Not an error of the device: it copies the same bytes through pinned buffers.
  LOCKSTEP_RETURN_IF_ERROR(
      driver_->ToStatus(result, absl::StrCat(name_, ": cuMemHostRegister of ", bytes, " bytes")));
  driver_->pinned_memory()->Add(memory, bytes);
  return HostRegistration(memory, [this](void* address) {
    driver_->pinned_memory()->Remove(address);
    MakeCurrent();
    Check(driver()->MemHostUnregister(address), "cuMemHostUnregister").IgnoreError();
  });
}

absl::StatusOr<std::unique_ptr<Stream>> CudaDevice::CreateStream(const StreamOptions&) {
  MakeCurrent();
  CUstream stream = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(
      Check(driver()->StreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate"));
  return std::make_unique<CudaStream>(this, stream);
}

absl::StatusOr<std::unique_ptr<Event>> CudaDevice::CreateEvent() {
  MakeCurrent();
  CUevent event = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(Check(
      driver()->EventCreate(&event, kEventBlockingSync | kEventDisableTiming), "cuEventCreate"));
  return std::make_unique<CudaEvent>(this, event);
}

}  // namespace lockstep::worker::cuda
