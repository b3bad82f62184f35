#include "common/client/call_set.h"

#include <grpcpp/client_context.h>

namespace lockstep {

bool CallSet::Enter(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  if (!cancelled_) calls_.insert(context);
  return !cancelled_;
}

void CallSet::Leave(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  calls_.erase(context);
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
      +[](absl::flat_hash_set<grpc::ClientContext*>* calls) { return calls->empty(); }, &calls_));
}

}  // namespace lockstep
