#include "common/rpc/event_queue.h"

#include <utility>

#include "common/base/time_slice.h"
#include "common/rpc/queue_event.h"

namespace lockstep::rpc {

EventQueue::EventQueue(std::unique_ptr<grpc::CompletionQueue> queue)
    : queue_(std::move(queue)), poller_([queue = queue_.get()] {
        UseShortTimeSlices();
        void* tag = nullptr;
        bool ok = false;
        while (queue->Next(&tag, &ok)) static_cast<QueueEvent*>(tag)->OnEvent(ok);
      }) {}

void EventQueue::Drain() {
  if (!poller_.joinable()) return;
  queue_->Shutdown();
  poller_.join();
}

}  // namespace lockstep::rpc
