#include "ps/service/data_calls.h"

#include "ps/service/pull_call.h"
#include "ps/service/push_call.h"
#include "ps/service/queue_event.h"

namespace lockstep::ps {
namespace {

// Calls of each kind that gRPC can hand over before we ask for more.
constexpr int kAhead = 8;

}  // namespace

void DataCalls::Serve(grpc::ServerCompletionQueue* queue) {
  const DataPlane plane{service_, shard_, memory_, &gate_, queue};
  for (int i = 0; i < kAhead; ++i) {
    PushCall::Await(plane);
    PullCall::Await(plane);
  }
  pollers_.emplace_back([queue] {
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) static_cast<QueueEvent*>(tag)->Happen(ok);
  });
}

void DataCalls::Join() {
  for (std::thread& poller : pollers_) poller.join();
  pollers_.clear();
}

}  // namespace lockstep::ps
