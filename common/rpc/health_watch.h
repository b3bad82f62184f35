// A call of Health.Watch: hears a status at once, and again when it has changed, until the caller
// leaves or the server stops.
#pragma once

#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/queue_event.h"
#include "common/rpc/served_call.h"
#include "common/rpc/service.h"
#include "proto/health.grpc.pb.h"

namespace lockstep::rpc {

// With bodies of bytes: everybody may call, so their size is looked at before they are parsed.
using HealthMethods = grpc::health::v1::Health::WithRawMethod_Check<
    grpc::health::v1::Health::WithRawMethod_Watch<grpc::health::v1::Health::Service>>;

// What a request asks about.
enum class HealthSubject { kLife, kReadiness, kUnknown };

// Of the services "" and "ready"; there are no others.
HealthSubject SubjectOf(absl::string_view service);

// A request that is too large or cannot be parsed ends with INVALID_ARGUMENT, and no hook is
// called for it but `left`. Thread-safe.
class HealthWatch final : public ServedCall<HealthWatch> {
  friend ServedCall;

 public:
  using Response = grpc::health::v1::HealthCheckResponse;
  using ServingStatus = Response::ServingStatus;

  // What the owner does about calls; called without a lock, on the queue's thread.
  struct Hooks {
    std::function<void(const std::shared_ptr<HealthWatch>&)> arrived;
    std::function<void(const std::shared_ptr<HealthWatch>&)> left;
  };

  HealthWatch(std::shared_ptr<const Hooks> hooks, const ServingQueue& queue);

  // Awaits the next call, and after it the one that follows.
  static void Await(const std::shared_ptr<const Hooks>& hooks, HealthMethods* methods,
                    const ServingQueue& queue);

  // All that is kept of the request while the watch lives.
  HealthSubject subject() const { return subject_; }
  // Of the statuses that come while one is under way only the newest follows.
  void SendStatus(ServingStatus status);
  // Tells the last status, then ends the call with `end`.
  void End(std::optional<ServingStatus> last, const grpc::Status& end);

 private:
  void Arrived(bool ok);
  void SendError(const grpc::Status& error) { End(std::nullopt, error); }
  void Written(bool ok);
  void Finished(bool) {}
  void Ended(bool);
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<const Hooks> hooks_;
  HealthMethods* methods_ = nullptr;
  grpc::ByteBuffer body_;
  HealthSubject subject_ = HealthSubject::kUnknown;
  CallEvent<HealthWatch> arrived_{this, &HealthWatch::Arrived};
  CallEvent<HealthWatch> written_{this, &HealthWatch::Written};
  CallEvent<HealthWatch> finished_{this, &HealthWatch::Finished};
  // Comes when the call is over for gRPC: until then it is kept.
  CallEvent<HealthWatch> ended_{this, &HealthWatch::Ended};

  absl::Mutex mutex_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_ ABSL_GUARDED_BY(mutex_);
  std::optional<ServingStatus> wanted_ ABSL_GUARDED_BY(mutex_);
  std::optional<ServingStatus> sent_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::rpc
