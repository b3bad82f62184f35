#include "worker/service/shared_memory.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "common/shm/segment.h"

namespace lockstep::worker {
namespace {

using Values = std::shared_ptr<const shm::Segment>;

// In the order in which they are made; they end in the other one.
struct RegisteredValues {
  std::shared_ptr<Device> device;
  Values segment;
  HostRegistration registration;
};

constexpr char kRemedy[] = ". Remedy: a greater limit of locked memory (ulimit -l)";

// `through`: the buffers that copies of it take.
void LogUnregistered(absl::string_view what, const Device& device, absl::string_view through,
                     const absl::Status& refused, absl::string_view remedy) {
  log::Warning(absl::StrCat("memory of ", what, " is not registered, ", device.name(),
                            " copies at a fraction of the speed, through ", through, ": ",
                            refused.message(), remedy));
}

// The same memory, registered for as long as somebody holds it.
Values Registered(Values segment, std::shared_ptr<Device> device) {
  absl::StatusOr<HostRegistration> registration = device->RegisterReadOnly(segment->bytes());
  if (!registration.ok()) {
    LogUnregistered(
        "values of a ps", *device, "a ring of pinned buffers", registration.status(),
        absl::StrCat(kRemedy,
                     ", where this GPU and driver take memory that is mapped for reading"));
    return segment;
  }
  if (*registration == nullptr) return segment;
  const std::shared_ptr<const RegisteredValues> registered(
      new RegisteredValues{std::move(device), std::move(segment), *std::move(registration)});
  return {registered, registered->segment.get()};
}

}  // namespace

SharedMemory::SharedMemory(const JobDef& job, std::shared_ptr<Device> device,
                           uint64_t gradient_bytes)
    : transport_(job.transport()), device_(std::move(device)) {
  const bool is_of_use = transport_.shared_memory() != TransportDef::OFF || !device_->is_host();
  if (gradient_bytes == 0 || !is_of_use) return;
  auto memory = GradientMemory::Create(gradient_bytes);
  if (!memory.ok()) {
    log::Info(absl::StrCat("shared memory unavailable, using gRPC: ", memory.status().message()));
    return;
  }
  gradients_ = *std::move(memory);
  auto registration = device_->RegisterHost(gradients_->segment()->bytes());
  if (registration.ok()) {
    registration_ = *std::move(registration);
  } else {
    LogUnregistered("gradients", *device_, "its driver's buffers", registration.status(), kRemedy);
  }
}

bool SharedMemory::ReadsValuesInPlace(const TransportDef& transport, const Device& device) {
  switch (transport.shared_memory()) {
    case TransportDef::MAP:
      return true;
    case TransportDef::COPY:
      return !device.is_host();
    default:
      return false;
  }
}

std::unique_ptr<TensorTransport> SharedMemory::Connect(const ClientOptions& ps) const {
  if (transport_.shared_memory() == TransportDef::OFF) return MakePsTransport(ps, nullptr);
  return MakePsTransport(
      ps, gradients_.get(),
      [name = ps.name](const absl::Status& shares) {
        log::Info(shares.ok() ? absl::StrCat("shares memory with ", name)
                              : absl::StrCat("shared memory with ", name,
                                             " unavailable, using gRPC: ", shares.message()));
      },
      [device = device_](Values values) { return Registered(std::move(values), device); });
}

}  // namespace lockstep::worker
