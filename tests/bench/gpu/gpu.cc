#include "tests/bench/gpu/gpu.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/tensor/tensor.h"
#include "worker/backend/backend.h"
#include "worker/device/cuda/driver.h"

namespace lockstep::bench::gpu {

absl::StatusOr<Gpu> Gpu::Open(worker::Precision precision) {
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::Backend backend,
                            worker::Backend::Open({.kind = worker::DeviceChoice::Kind::kCuda},
                                                  worker::cuda::SharedDriver()));
  Gpu gpu;
  gpu.device_ = backend.MakeDevice(1);
  gpu.ops_ = &backend.ops(precision);
  gpu.device_->MakeCurrent();
  LOCKSTEP_ASSIGN_OR_RETURN(gpu.context_, gpu.ops_->CreateContext(gpu.device_.get()));
  LOCKSTEP_ASSIGN_OR_RETURN(gpu.stream_, gpu.device_->CreateStream({}));
  LOCKSTEP_ASSIGN_OR_RETURN(gpu.event_, gpu.device_->CreateEvent());
  return gpu;
}

absl::Status Gpu::Wait() const {
  stream_->Record(event_.get());
  return event_->Wait();
}

namespace {

constexpr int64_t kDrawn = 1 << 20;

template <typename T>
const Tensor& Drawn() {
  static const Tensor& drawn = *new Tensor([] {
    Tensor random(DTypeOf<T>(), Shape({kDrawn}));
    const Philox generator(1, "numbers");
    uint64_t counter = 0;
    for (T& value : random.as<T>()) value = T(UniformFloat(generator.At(counter++)[0]));
    return random;
  }());
  return drawn;
}

}  // namespace

absl::StatusOr<worker::DeviceBuffer> Gpu::RandomNumbers(int64_t count, DType type) const {
  const Tensor& drawn = type == DType::kBFloat16 ? Drawn<BFloat16>() : Drawn<float>();
  const size_t size = SizeOf(type);
  LOCKSTEP_ASSIGN_OR_RETURN(worker::DeviceBuffer memory,
                            device_->Allocate(static_cast<size_t>(count) * size));
  for (int64_t first = 0; first < count; first += kDrawn) {
    const auto numbers = static_cast<size_t>(std::min(kDrawn, count - first));
    stream_->CopyToDevice(memory.get() + first * size, drawn.data(), numbers * size);
  }
  LOCKSTEP_RETURN_IF_ERROR(Wait());
  return memory;
}

absl::StatusOr<absl::Duration> Gpu::DurationOf(int times, const Enqueue& enqueue) const {
  LOCKSTEP_RETURN_IF_ERROR(Wait());
  const absl::Duration start = Clock::Real()->Monotonic();
  for (int i = 0; i < times; ++i) LOCKSTEP_RETURN_IF_ERROR(enqueue());
  LOCKSTEP_RETURN_IF_ERROR(Wait());
  return Clock::Real()->Monotonic() - start;
}

absl::StatusOr<double> Gpu::SecondsOf(int times, const Enqueue& enqueue) const {
  // An idle GPU lowers its clock.
  constexpr absl::Duration kWarmUp = absl::Milliseconds(100);
  for (absl::Duration warm; warm < kWarmUp;) {
    LOCKSTEP_ASSIGN_OR_RETURN(const absl::Duration took, DurationOf(times, enqueue));
    warm += took;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::Duration took, DurationOf(times, enqueue));
  return absl::ToDoubleSeconds(took) / times;
}

}  // namespace lockstep::bench::gpu
