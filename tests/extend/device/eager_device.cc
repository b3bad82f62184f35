#include "tests/extend/device/eager_device.h"

namespace lockstep::extend {
namespace {

// All work that was enqueued is done.
class EagerEvent : public worker::Event {
 public:
  explicit EagerEvent(const EagerDevice* device) : device_(device) {}
  absl::Status Wait() override { return device_->status(); }

 private:
  const EagerDevice* const device_;
};

class EagerStream : public worker::HostStream {
 public:
  explicit EagerStream(EagerDevice* device) : device_(device) {}
  void Enqueue(const worker::HostTask& task) override { device_->Run(task); }
  void Record(worker::Event*) override {}
  void WaitFor(worker::Event*) override {}

 private:
  EagerDevice* const device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<worker::Stream>> EagerDevice::CreateStream(
    const worker::StreamOptions&) {
  return std::make_unique<EagerStream>(this);
}

absl::StatusOr<std::unique_ptr<worker::Event>> EagerDevice::CreateEvent() {
  return std::make_unique<EagerEvent>(this);
}

void EagerDevice::Run(const worker::HostTask& task) {
  if (status_.ok()) status_ = task.run(task.object, task.argument, task.number);
}

}  // namespace lockstep::extend
