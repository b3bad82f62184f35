// The standard health service: "" is live from the start, "ready" as it is told.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/health_watch.h"
#include "common/rpc/service.h"
#include "proto/health.grpc.pb.h"

namespace lockstep::rpc {

// Thread-safe.
class HealthService final {
 public:
  HealthService();

  void SetReady(bool ready);
  // For a server that stops: tells every watcher NOT_SERVING and ends its call.
  void Stop();

  grpc::Service* methods() { return &methods_; }
  // As Service::Serve.
  void Serve(const ServingQueue& queue);

 private:
  using Response = grpc::health::v1::HealthCheckResponse;

  Response::ServingStatus StatusOf(HealthSubject subject) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Response> Check(const std::string& service) const;
  void Add(const std::shared_ptr<HealthWatch>& watch);
  void Remove(const std::shared_ptr<HealthWatch>& watch);

  HealthMethods methods_;
  const std::shared_ptr<const HealthWatch::Hooks> hooks_;
  mutable absl::Mutex mutex_;
  bool is_ready_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<std::shared_ptr<HealthWatch>> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::rpc
