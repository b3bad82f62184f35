#include "common/rpc/health_watch.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include "common/rpc/limits.h"
#include "common/rpc/request_body.h"

namespace lockstep::rpc {
namespace {

constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

grpc::ByteBuffer Serialize(const HealthWatch::Response& response) {
  grpc::ByteBuffer body;
  bool is_own = false;
  // Of one number: it cannot fail.
  (void)grpc::SerializationTraits<HealthWatch::Response>::Serialize(response, &body, &is_own);
  return body;
}

}  // namespace

HealthSubject SubjectOf(absl::string_view service) {
  if (service.empty()) return HealthSubject::kLife;
  return service == "ready" ? HealthSubject::kReadiness : HealthSubject::kUnknown;
}

HealthWatch::HealthWatch(std::shared_ptr<const Hooks> hooks, const ServingQueue& queue)
    : ServedCall(queue), hooks_(std::move(hooks)), writer_(&context_) {}

void HealthWatch::Await(const std::shared_ptr<const Hooks>& hooks, HealthMethods* methods,
                        const ServingQueue& queue) {
  const auto watch = std::make_shared<HealthWatch>(hooks, queue);
  watch->methods_ = methods;
  // Given back only if a call arrives.
  watch->context_.AsyncNotifyWhenDone(watch->ended_.tag());
  absl::MutexLock lock(&watch->mutex_);
  methods->RequestWatch(&watch->context_, &watch->body_, &watch->writer_, queue.queue, queue.queue,
                        watch->arrived_.Arm());
}

void HealthWatch::Arrived(bool ok) {
  if (!ok) return;  // the server stops
  ended_.Arm();
  if (!Enter()) return;
  Await(hooks_, methods_, queue_);
  message_bytes_ = body_.Length();
  grpc::health::v1::HealthCheckRequest request;
  const absl::Status status = ParseRequest(kWatch, kMaxHealthRequestBytes, &body_, &request);
  body_.Clear();
  if (!status.ok()) return Refuse(status);
  subject_ = SubjectOf(request.service());
  hooks_->arrived(shared_from_this());
}

void HealthWatch::SendStatus(ServingStatus status) {
  absl::MutexLock lock(&mutex_);
  wanted_ = status;
  Advance();
}

void HealthWatch::End(std::optional<ServingStatus> last, const grpc::Status& end) {
  absl::MutexLock lock(&mutex_);
  if (last.has_value()) wanted_ = last;
  end_ = end;
  Advance();
}

void HealthWatch::Advance() {
  if (is_writing_ || is_over_) return;
  if (wanted_ != sent_) {
    is_writing_ = true;
    sent_ = wanted_;
    Response response;
    response.set_status(*sent_);
    writer_.Write(Serialize(response), written_.Arm());
  } else if (end_.has_value()) {
    is_over_ = true;
    writer_.Finish(*end_, finished_.Arm());
  }
}

void HealthWatch::Written(bool ok) {
  absl::MutexLock lock(&mutex_);
  is_writing_ = false;
  // The caller has left.
  if (!ok) is_over_ = true;
  Advance();
}

void HealthWatch::Ended(bool) {
  {
    absl::MutexLock lock(&mutex_);
    is_over_ = true;
  }
  DropRefusalIfCancelled();
  hooks_->left(shared_from_this());
}

}  // namespace lockstep::rpc
