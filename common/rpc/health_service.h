// The standard health service: "" is live from the start, "ready" as it is told.
#pragma once

#include <atomic>

#include "common/rpc/service.h"
#include "proto/health.grpc.pb.h"

namespace lockstep::rpc {

class HealthService final : public Service {
 public:
  // Thread-safe.
  void SetReady(bool ready) { ready_.store(ready, std::memory_order_relaxed); }

  grpc::Service* methods() override { return &methods_; }
  void Serve(const ServingQueue& queue) override;

 private:
  using Methods =
      grpc::health::v1::Health::WithAsyncMethod_Check<grpc::health::v1::Health::Service>;

  Methods methods_;
  std::atomic<bool> ready_ = false;
};

}  // namespace lockstep::rpc
