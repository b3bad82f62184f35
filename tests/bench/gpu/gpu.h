// This machine's first GPU, with a stream to measure on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/tensor/dtype.h"
#include "worker/device/device.h"
#include "worker/ops/op_table.h"
#include "worker/ops/precision.h"

namespace lockstep::bench::gpu {

// Not thread-safe.
class Gpu {
 public:
  // FAILED_PRECONDITION with the remedy.
  static absl::StatusOr<Gpu> Open(worker::Precision precision = worker::Precision::kFloat32);

  using Enqueue = std::function<absl::Status()>;

  const std::shared_ptr<worker::Device>& device() const { return device_; }
  const worker::OpTable& ops() const { return *ops_; }
  worker::OpContext* context() const { return context_.get(); }
  worker::Stream* stream() const { return stream_.get(); }

  // Memory with so many numbers in [0, 1), float32 or bfloat16: zeros can be faster than what a
  // model has.
  absl::StatusOr<worker::DeviceBuffer> RandomNumbers(int64_t count,
                                                     DType type = DType::kFloat32) const;

  // Of one call among `times` calls that follow one another, on a GPU that is warm.
  absl::StatusOr<double> SecondsOf(int times, const Enqueue& enqueue) const;

 private:
  absl::Status Wait() const;
  absl::StatusOr<absl::Duration> DurationOf(int times, const Enqueue& enqueue) const;

  std::shared_ptr<worker::Device> device_;
  const worker::OpTable* ops_ = nullptr;
  std::unique_ptr<worker::OpContext> context_;
  std::unique_ptr<worker::Stream> stream_;
  std::unique_ptr<worker::Event> event_;
};

}  // namespace lockstep::bench::gpu
