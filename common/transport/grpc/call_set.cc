#include "common/transport/grpc/call_set.h"

#include <grpcpp/client_context.h>

namespace lockstep {

bool CallSet::Enter(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_) return false;
  calls_.insert(context);
  ++unfinished_;
  return true;
}

void CallSet::Ended(std::unique_ptr<grpc::ClientContext> context) {
  absl::MutexLock lock(&mutex_);
  calls_.erase(context.get());
}

void CallSet::Leave() {
  absl::MutexLock lock(&mutex_);
  --unfinished_;
}

bool CallSet::is_cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void CallSet::CancelAll() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  // Only asks: the callbacks come from gRPC's threads.
  for (grpc::ClientContext* context : calls_) context->TryCancel();
}

void CallSet::CancelAndWait() {
  CancelAll();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](int* unfinished) { return *unfinished == 0; }, &unfinished_));
}

}  // namespace lockstep
