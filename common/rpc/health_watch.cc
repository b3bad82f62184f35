#include "common/rpc/health_watch.h"

#include <utility>

namespace lockstep::rpc {

HealthWatch::HealthWatch(std::shared_ptr<const Hooks> hooks, const ServingQueue& queue)
    : hooks_(std::move(hooks)), queue_(queue), writer_(&context_) {}

void HealthWatch::Await(const std::shared_ptr<const Hooks>& hooks,
                        grpc::health::v1::Health::AsyncService* service,
                        const ServingQueue& queue) {
  const auto watch = std::make_shared<HealthWatch>(hooks, queue);
  watch->service_ = service;
  // Given back only if a call arrives.
  watch->context_.AsyncNotifyWhenDone(watch->ended_.tag());
  absl::MutexLock lock(&watch->mutex_);
  service->RequestWatch(&watch->context_, &watch->request_, &watch->writer_, queue.queue,
                        queue.queue, watch->arrived_.Arm());
}

void HealthWatch::Arrived(bool ok) {
  if (!ok) return;  // the server stops
  ended_.Arm();
  pass_ = queue_.gate->Enter();
  if (!pass_) return;
  Await(hooks_, service_, queue_);
  hooks_->arrived(shared_from_this());
}

void HealthWatch::Tell(ServingStatus status) {
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
    writer_.Write(response, written_.Arm());
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
  hooks_->left(shared_from_this());
}

}  // namespace lockstep::rpc
