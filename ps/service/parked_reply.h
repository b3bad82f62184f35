// A reply that may come much later, or never: the caller can go away first.
#pragma once

#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/grpc_status.h"

namespace lockstep::ps {

// One call of the callback API. Deletes itself when gRPC is done with it.
class ParkedReply final : public grpc::ServerUnaryReactor {
 public:
  // What the owner of the call keeps. After the call has ended, answering does nothing, and all
  // that is kept is this.
  class Handle {
   public:
    // At most once counts. `fill` writes the reply message, which is there only for a call that has
    // not ended.
    template <typename Fill>
    void Answer(const absl::Status& status, Fill fill) {
      ParkedReply* reply = Take();
      if (reply == nullptr) return;
      if (status.ok()) fill();
      reply->Finish(rpc::ToGrpc(status));
    }

   private:
    friend class ParkedReply;
    ParkedReply* Take() {
      absl::MutexLock lock(&mutex_);
      return std::exchange(reply_, nullptr);
    }

    absl::Mutex mutex_;
    ParkedReply* reply_ ABSL_GUARDED_BY(mutex_);  // until answered: gRPC keeps it that long
  };

  ParkedReply() : handle_(std::make_shared<Handle>()) {
    absl::MutexLock lock(&handle_->mutex_);
    handle_->reply_ = this;
  }

  // Take it before the call can be answered.
  std::shared_ptr<Handle> handle() const { return handle_; }

 private:
  void OnCancel() override {
    handle_->Answer(absl::CancelledError("the caller is gone"), [] {});
  }
  void OnDone() override { delete this; }

  const std::shared_ptr<Handle> handle_;
};

}  // namespace lockstep::ps
